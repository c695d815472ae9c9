// Checkpoints that survive a kill at any moment.
//
//   step_N.ckpt = magic, identity, step, position, losses, dense buffers, touched table rows,
//   length, CRC-32
//
// A table row's initial weight is a function of the seed and its Adagrad state is positive exactly
// if training has touched it (state += mean g²), so only touched rows are kept: megabytes after a
// thousand steps where the tables are gigabytes. The file is written aside, synced and renamed, and
// the older one is removed only then. Reading goes over the file twice: the checksum first, so that
// nothing is loaded from a damaged one.

#include "gnomon/train/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace gnomon::train {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "gnomon checkpoint 1\n";
constexpr std::size_t kMagicBytes = sizeof kMagic - 1;
constexpr std::size_t kTrailerBytes = 2 * sizeof(std::uint64_t);  // length, checksum
constexpr std::size_t kChunk = 1 << 20;

std::uint64_t Extend(std::uint64_t checksum, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const Bytef*>(data);
  auto crc = static_cast<uLong>(checksum);
  while (bytes > 0) {
    const auto part = static_cast<uInt>(std::min<std::size_t>(bytes, 1u << 30));
    crc = crc32(crc, at, part);
    at += part;
    bytes -= part;
  }
  return crc;
}

class Writer {
 public:
  explicit Writer(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) Fail();
  }
  ~Writer() {
    if (file_) std::fclose(file_);
  }
  void Raw(const void* data, std::size_t bytes) {
    if (!error_.empty() || bytes == 0) return;
    checksum_ = Extend(checksum_, data, bytes);
    length_ += bytes;
    if (std::fwrite(data, 1, bytes, file_) != bytes) Fail();
  }
  template <class T>
  void Value(T value) {
    Raw(&value, sizeof value);
  }
  void Text(const std::string& text) {
    Value<std::uint64_t>(text.size());
    Raw(text.data(), text.size());
  }
  // Trailer, sync, close.
  Status Finish() {
    const std::uint64_t trailer[2] = {length_, checksum_};
    if (error_.empty() && std::fwrite(trailer, 1, sizeof trailer, file_) != sizeof trailer) Fail();
    if (error_.empty() && (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0)) Fail();
    if (file_ && std::fclose(std::exchange(file_, nullptr)) != 0 && error_.empty()) Fail();
    if (error_.empty()) return Done{};
    return Fault("cannot write the checkpoint: " + error_, path_);
  }

 private:
  void Fail() { error_ = std::strerror(errno); }
  std::string path_, error_;
  std::FILE* file_;
  std::uint64_t length_ = 0, checksum_ = 0;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "rb")) {}
  ~Reader() {
    if (file_) std::fclose(file_);
  }
  // Reads the whole file once and compares length and checksum, then goes back to the start.
  Status Verify() {
    if (!file_) return BadInput(std::string("cannot read: ") + std::strerror(errno), path_);
    std::error_code error;
    const std::uint64_t size = fs::file_size(path_, error);
    if (error || size < kMagicBytes + kTrailerBytes) return Damaged("it is cut short");
    remaining_ = size - kTrailerBytes;
    std::vector<char> chunk(kChunk);
    std::uint64_t checksum = 0;
    for (std::uint64_t left = remaining_; left > 0;) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(left, kChunk));
      if (std::fread(chunk.data(), 1, part, file_) != part)
        return Damaged("it cannot be read whole");
      checksum = Extend(checksum, chunk.data(), part);
      left -= part;
    }
    std::uint64_t trailer[2] = {};
    if (std::fread(trailer, 1, sizeof trailer, file_) != sizeof trailer)
      return Damaged("it cannot be read whole");
    if (trailer[0] != remaining_) return Damaged("its length is wrong: it is cut short");
    if (trailer[1] != checksum) return Damaged("its checksum is wrong");
    std::rewind(file_);
    return Done{};
  }
  Status Raw(void* data, std::size_t bytes) {
    if (bytes > remaining_) return Damaged("a part of it is longer than the file");
    remaining_ -= bytes;
    if (bytes > 0 && std::fread(data, 1, bytes, file_) != bytes)
      return Damaged("it cannot be read whole");
    return Done{};
  }
  template <class T>
  Status Value(T& value) {
    return Raw(&value, sizeof value);
  }
  Status Text(std::string& text) {
    std::uint64_t size = 0;
    GNOMON_TRY(Value(size));
    if (size > remaining_) return Damaged("a part of it is longer than the file");
    text.resize(size);
    return Raw(text.data(), size);
  }
  Error Damaged(const std::string& why) const {
    return BadInput("the checkpoint is damaged: " + why, path_);
  }

 private:
  std::string path_;
  std::FILE* file_;
  std::uint64_t remaining_ = 0;
};

// Step of "step_N.ckpt", or -1.
std::int64_t StepOf(const fs::path& path) {
  long long step = -1;
  int used = 0;
  const std::string name = path.filename().string();
  if (std::sscanf(name.c_str(), "step_%lld.ckpt%n", &step, &used) != 1) return -1;
  return static_cast<std::size_t>(used) == name.size() ? step : -1;
}

Status SyncFolder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor < 0 || fsync(descriptor) != 0) {
    const std::string why = std::strerror(errno);
    if (descriptor >= 0) close(descriptor);
    return Fault("cannot sync the checkpoint folder: " + why, folder);
  }
  close(descriptor);
  return Done{};
}

void WriteTables(const TableStorage& tables, Writer& writer) {
  std::vector<std::int64_t> touched;
  for (std::int64_t row = 0; row < tables.total_rows(); ++row)
    if (tables.state()[row] != 0) touched.push_back(row);
  const auto row_bytes = static_cast<std::size_t>(tables.dim()) * sizeof(float);
  writer.Value<std::uint64_t>(touched.size());
  writer.Raw(touched.data(), touched.size() * sizeof(std::int64_t));
  for (std::int64_t row : touched) {
    writer.Value(tables.state()[row]);
    writer.Raw(tables.weight() + row * tables.dim(), row_bytes);
  }
}

Status ReadTables(TableStorage& tables, Reader& reader) {
  std::uint64_t count = 0;
  GNOMON_TRY(reader.Value(count));
  if (count > static_cast<std::uint64_t>(tables.total_rows()))
    return reader.Damaged("it has more rows than the tables");
  std::vector<std::int64_t> touched(count);
  GNOMON_TRY(reader.Raw(touched.data(), count * sizeof(std::int64_t)));
  for (std::int64_t row : touched) {
    if (row < 0 || row >= tables.total_rows())
      return reader.Damaged("a row lies outside the tables");
    GNOMON_TRY(reader.Value(tables.state()[row]));
    GNOMON_TRY(reader.Raw(tables.weight() + row * tables.dim(),
                          static_cast<std::size_t>(tables.dim()) * sizeof(float)));
  }
  return Done{};
}

// "a: 1\nb: 2" against another: the first line that differs.
std::string FirstDifference(const std::string& mine, const std::string& theirs) {
  std::size_t begin = 0;
  while (begin < mine.size()) {
    const std::size_t end = std::min(mine.find('\n', begin), mine.size());
    const std::string line = mine.substr(begin, end - begin);
    const std::size_t their_end =
        std::min(theirs.find('\n', std::min(begin, theirs.size())), theirs.size());
    const std::string their_line =
        begin < theirs.size() ? theirs.substr(begin, their_end - begin) : std::string("nothing");
    if (line != their_line)
      return fmt::format("this run has \"{}\", the checkpoint \"{}\"", line, their_line);
    begin = end + 1;
  }
  return "the checkpoint says more than this run";
}

}  // namespace

std::string CheckpointIdentity(const Plan& plan, const SampleShape& shape, std::uint64_t seed,
                               const std::string& data) {
  const Recipe& r = plan.recipe;
  std::string text = fmt::format("model {}\n", plan.model.id);
  for (const Block& block : plan.model.blocks) {
    text += fmt::format("block {} {}", block.name, static_cast<int>(block.type));
    for (std::int64_t width : block.widths) text += fmt::format(" {}", width);
    text += fmt::format(" layers {} rank {}\n", block.layers, block.rank);
  }
  text += fmt::format("embedding dim {}, rows", plan.model.embedding_dim);
  for (std::int64_t rows : shape.table_rows) text += fmt::format(" {}", rows);
  text += fmt::format("\nzipf exponent {}\n", plan.model.zipf_exponent);
  text += fmt::format("dtype {}\nbatch {}\nlearning rate {}\nepsilon {}\n", Name(r.dtype), r.batch,
                      r.learning_rate, plan.model.epsilon);
  text += fmt::format("embedding update {}\nfused tables {}\npad to {}\nthreads {}\n",
                      static_cast<int>(r.embedding_update), r.fused_tables, r.pad_to, ThreadsOf(r));
  text += fmt::format("fused linear {}, interaction {}, optimizer {}, backend {}\n", r.fused_linear,
                      r.fused_interaction, r.fused_optimizer, static_cast<int>(r.gemm_backend));
  for (const auto& [op, config] : plan.kernels) text += fmt::format("kernel {} {}\n", op, config);
  return text + fmt::format("seed {}\ndata {}\n", seed, data.empty() ? "synthetic" : data);
}

Status WriteCheckpoint(const std::string& folder, const std::string& identity,
                       const TrainState& state, const TableStorage& tables,
                       const std::vector<NamedBuffer>& buffers) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Fault("cannot make the checkpoint folder: " + error.message(), folder);
  const std::string target = (fs::path(folder) / fmt::format("step_{}.ckpt", state.step)).string();
  const std::string aside = target + ".part";
  Writer writer(aside);
  writer.Raw(kMagic, kMagicBytes);
  writer.Text(identity);
  writer.Value(state.step);
  writer.Value(state.next_sample);
  writer.Value(state.seed);
  writer.Value<std::uint64_t>(state.losses.size());
  writer.Raw(state.losses.data(), state.losses.size() * sizeof(double));
  writer.Value<std::uint64_t>(buffers.size());
  for (const NamedBuffer& buffer : buffers) {
    writer.Text(buffer.name);
    writer.Value<std::uint64_t>(buffer.values.size());
    writer.Raw(buffer.values.data(), buffer.values.size_bytes());
  }
  WriteTables(tables, writer);
  if (Status finished = writer.Finish(); !finished.ok()) {
    fs::remove(aside, error);
    return finished;
  }
  fs::rename(aside, target, error);
  if (error) return Fault("cannot rename the checkpoint: " + error.message(), target);
  GNOMON_TRY(SyncFolder(folder));
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::int64_t step = StepOf(entry.path());
    if (step >= 0 && step < state.step) fs::remove(entry.path(), error);
  }
  return Done{};
}

Result<TrainState> ReadCheckpoint(const std::string& folder, const std::string& identity,
                                  TableStorage& tables, const std::vector<NamedBuffer>& buffers) {
  std::error_code error;
  fs::path newest;
  std::int64_t newest_step = -1;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (const std::int64_t step = StepOf(entry.path()); step > newest_step) {
      newest_step = step;
      newest = entry.path();
    }
  }
  if (newest_step < 0)
    return BadInput("no checkpoint to resume from (step_N.ckpt); run without --resume first",
                    folder);

  Reader reader(newest.string());
  GNOMON_TRY(reader.Verify());
  std::string magic(kMagicBytes, ' '), theirs;
  GNOMON_TRY(reader.Raw(magic.data(), kMagicBytes));
  if (magic != kMagic) return reader.Damaged("it does not begin as one");
  GNOMON_TRY(reader.Text(theirs));
  if (theirs != identity)
    return BadInput("the checkpoint is of another run: " + FirstDifference(identity, theirs),
                    newest.string());
  TrainState state;
  GNOMON_TRY(reader.Value(state.step));
  GNOMON_TRY(reader.Value(state.next_sample));
  GNOMON_TRY(reader.Value(state.seed));
  std::uint64_t losses = 0, count = 0;
  GNOMON_TRY(reader.Value(losses));
  if (losses > static_cast<std::uint64_t>(state.step))
    return reader.Damaged("more losses than steps");
  state.losses.resize(losses);
  GNOMON_TRY(reader.Raw(state.losses.data(), losses * sizeof(double)));
  GNOMON_TRY(reader.Value(count));
  if (count != buffers.size()) return reader.Damaged("the number of its parameters is wrong");
  for (const NamedBuffer& buffer : buffers) {
    std::string name;
    std::uint64_t size = 0;
    GNOMON_TRY(reader.Text(name));
    GNOMON_TRY(reader.Value(size));
    if (name != buffer.name || size != buffer.values.size())
      return reader.Damaged(fmt::format("parameter {} is not where it belongs", buffer.name));
    GNOMON_TRY(reader.Raw(buffer.values.data(), buffer.values.size_bytes()));
  }
  GNOMON_TRY(ReadTables(tables, reader));
  return state;
}

}  // namespace gnomon::train
