// gnomon gemm accuracy: docs/accuracy.md from folders of measured files.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "apps/command.h"
#include "apps/families.h"
#include "gnomon/base/files.h"
#include "gnomon/base/progress.h"
#include "gnomon/report/evaluation_report.h"

namespace gnomon::app {
namespace {

namespace fs = std::filesystem;

struct AccuracyArguments {
  std::vector<std::string> measured;
  std::string output;
  bool json = false;
};

/// Files by name: a folder's CSV files and those of its folder `ops`; a file is itself.
Result<std::map<std::string, std::string>> FilesIn(const std::vector<std::string>& places) {
  std::map<std::string, std::string> files;
  for (const std::string& place : places) {
    std::error_code error;
    if (fs::is_regular_file(place, error)) {
      files[fs::path(place).filename().string()] = place;
      continue;
    }
    if (!fs::is_directory(place, error))
      return BadInput("is neither a file nor a folder of measured files", place);
    for (const fs::path& folder : {fs::path(place), fs::path(place) / "ops"}) {
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() != ".csv") continue;
        const bool ops = folder.filename() == "ops";
        files[(ops ? "ops/" : "") + entry.path().filename().string()] = entry.path().string();
      }
    }
  }
  if (files.empty()) return BadInput("no CSV file there", "--measured");
  return files;
}

/// Rows of `host` are a machine's own: they need its calibration, and would differ everywhere.
bool OnlyHost(const std::vector<Measurement>& rows) {
  return std::all_of(rows.begin(), rows.end(),
                     [](const Measurement& row) { return row.device == "host"; });
}

/// Nothing: the file holds no measurements of GEMMs or operators, or only this machine's own.
Result<std::optional<AccuracyFile>> Evaluated(const std::string& name, const std::string& path,
                                              std::span<const Family* const> families) {
  AccuracyFile file;
  file.name = name;
  GNOMON_ASSIGN(const CsvTable table, ReadCsv(path));
  const auto has = [&](std::string_view column) { return table.FindColumn(column) >= 0; };
  if (has("device") && has("op")) {
    GNOMON_ASSIGN(const OpsFile ops, ReadOps(path));
    file.ops = EvaluateOps(ops);
    return std::optional(std::move(file));
  }
  if (!has("family") || !has("us") || !has("m")) return std::optional<AccuracyFile>();
  GNOMON_ASSIGN(const MeasuredTable measured, ReadMeasuredTable(path));
  if (OnlyHost(measured.rows)) return std::optional<AccuracyFile>();
  GNOMON_ASSIGN(const std::vector<Device> devices, FindDevicesOf(measured.rows, path));
  GNOMON_ASSIGN(file.gemm, Evaluate(devices, measured.rows, families));
  file.failed = measured.failed;
  return std::optional(std::move(file));
}

int AccuracyCommand(const AccuracyArguments& arguments) {
  const auto paths = FilesIn(arguments.measured);
  if (!paths) return Fail(paths.error());
  const auto families = Families("", nullptr);
  if (!families) return Fail(families.error());
  std::vector<AccuracyFile> files;
  std::optional<Error> fault;
  {
    Progress progress("evaluating", static_cast<int>(paths->size()));
    int done = 0;
    for (const auto& [name, path] : *paths) {
      progress.Update(done++, name);
      auto file = Evaluated(name, path, *families);
      if (!file) {
        fault = file.error();
        break;
      }
      if (*file) files.push_back(std::move(**file));
    }
  }
  if (fault) return Fail(*fault);
  const std::string text = AccuracyMarkdown(files);
  if (arguments.output.empty()) return Print(arguments.json, text, AccuracyJson(files));
  if (const Status written = WriteFile(arguments.output, text); !written)
    return Fail(written.error());
  return Print(arguments.json,
               fmt::format("{} files evaluated into {}\n", files.size(), arguments.output),
               AccuracyJson(files));
}

}  // namespace

void AddAccuracyCommand(CLI::App& gemm, Chosen& chosen) {
  auto accuracy = std::make_shared<AccuracyArguments>();
  CLI::App* command =
      AddLeaf(gemm, "accuracy", "predictions against every file of measurements, as Markdown",
              "gnomon gemm accuracy --measured bench/results -o docs/accuracy.md", &accuracy->json);
  command
      ->add_option("--measured", accuracy->measured, "folders (with their ops/) and files of CSV")
      ->required();
  command->add_option("-o,--output", accuracy->output, "file to write (default: print it)");
  command->callback([&chosen, accuracy] { chosen = [=] { return AccuracyCommand(*accuracy); }; });
}

}  // namespace gnomon::app
