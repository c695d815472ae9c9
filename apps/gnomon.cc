// gnomon: the command line. Arguments choose one command (a file each beside this one); the command
// calls the library and prints what gnomon/report makes of the answer. No arithmetic here.
//
// Exit codes: 0 fine, 1 a negative verdict, 2 bad usage or input, 3 a fault of ours.

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>

#include "apps/command.h"
#include "gnomon/base/nearest.h"

namespace gnomon::app {
namespace {

constexpr std::string_view kTeach =
    R"(gnomon: how long will it take on that chip, which kernel, and what should change?

  gnomon gemm select --device host --dtype bf16 -m 8192 -n 512 -k 3456
                                      the best kernel for a matrix product, no warm-up
  gnomon codesign models/dlrm_kaggle.toml --from h100 --to host --run
                                      redesign a model for this machine, train both ways, compare
  gnomon device list                  the accelerators it knows; calibrate this machine:
  gnomon device calibrate --on host

Every command: gnomon COMMAND --help
)";

/// The names that `app` accepts here: subcommands, or the options of the deepest one chosen.
std::vector<std::string> ValidWords(const CLI::App* app, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      for (const std::string& name : option->get_snames()) words.push_back("-" + name);
    }
  } else {
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; }))
      words.push_back(sub->get_name());
  }
  return words;
}

const CLI::App* Deepest(const CLI::App& app) {
  const CLI::App* deepest = &app;
  for (auto chosen = deepest->get_subcommands(); !chosen.empty();
       chosen = deepest->get_subcommands())
    deepest = chosen.front();
  return deepest;
}

int UsageError(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const CLI::App* where = Deepest(app);
  // CLI11 reports leftovers without saying what would have been right: find the first word that is
  // neither a command, an option nor a value, and name the nearest valid one.
  // (Its error names carry the app's name, so the kind is told by the code.)
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (kind == CLI::ExitCodes::ExtrasError || kind == CLI::ExitCodes::RequiredError) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
      const bool option = word.starts_with("-");
      const bool here = where->get_subcommands([](const CLI::App*) { return true; }).empty();
      if (option != here) continue;
      const std::vector<std::string> valid = ValidWords(where, option);
      const CLI::App* parent = where;
      bool known = std::find(valid.begin(), valid.end(), word) != valid.end();
      for (; parent != nullptr && !known; parent = parent->get_parent())
        known = parent->get_name() == word;
      if (known) continue;
      const std::vector<std::string_view> views(valid.begin(), valid.end());
      fmt::print(stderr, "gnomon: {}\n", UnknownName(option ? "option" : "command", word, views));
      return kBadUsage;
    }
  }
  fmt::print(
      stderr, "gnomon: {}; see gnomon {}--help\n", error.what(),
      where->get_name().empty() || where == &app ? "" : [&] {
        std::string path;
        for (const CLI::App* a = where; a != nullptr && a != &app; a = a->get_parent())
          path = a->get_name() + " " + path;
        return path;
      }());
  return kBadUsage;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Predicts, selects, redesigns and trains recommendation models across accelerators."};
  app.name("gnomon");
  app.set_version_flag("--version", GNOMON_VERSION);
  app.require_subcommand(0, 1);
  Chosen chosen;
  AddDeviceCommands(app, chosen);
  AddGemmCommands(app, chosen);
  AddCostCommands(app, chosen);
  AddCodesignCommand(app, chosen);
  AddTrainCommand(app, chosen);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return Print(Deepest(app)->help("", CLI::AppFormatMode::Normal));
  } catch (const CLI::CallForAllHelp& help) {
    return Print(app.help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion& version) {
    return Print(fmt::format("gnomon {}\n", GNOMON_VERSION));
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error, argc, argv);
  }
  if (!chosen) return Print(kTeach);
  return chosen();
}

}  // namespace

int Print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return kFine;
  return Fail(Fault("standard output cannot be written (disk full or pipe closed)"));
}

namespace {

// Cells of input files are shown as they are but for bytes that would steer a terminal.
std::string Shown(std::string text) {
  constexpr unsigned char kFirstShown = 0x20, kDelete = 0x7f;
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < kFirstShown && c != '\n' && c != '\t') || byte == kDelete) c = '?';
  }
  return text;
}

}  // namespace

int Print(bool json, const std::string& text, const Json& value) {
  return Print(json ? JsonText(value) : Shown(text));
}

const CLI::Validator& Decimal() {
  static const CLI::Validator check(
      [](std::string& text) {
        const std::string digits = text.substr(text.starts_with('-') ? 1 : 0);
        const bool plain = !digits.empty() &&
                           digits.find_first_not_of("0123456789") == std::string::npos &&
                           (digits == "0" || digits.front() != '0');
        if (!plain) return "'" + text + "' is no decimal whole number";
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() ? std::string() : "'" + text + "' does not fit 64 bits";
      },
      "");
  return check;
}

int Fail(const Error& error) {
  fmt::print(stderr, "gnomon: {}\n", Shown(error.Text()));
  return error.code == Error::Code::kBadInput ? kBadUsage : kOurFault;
}

CLI::App* AddLeaf(CLI::App& parent, const std::string& name, const std::string& help,
                  const std::string& example, bool* json) {
  CLI::App* leaf = parent.add_subcommand(name, help);
  leaf->footer("Example:\n  " + example);
  leaf->add_flag("--json", *json, "print JSON with stable keys");
  return leaf;
}

}  // namespace gnomon::app

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is seen by Print
  try {
    return gnomon::app::Main(argc, argv);
  } catch (const std::exception& error) {
    // The standard library and third parties may throw (out of memory); nothing of ours does.
    std::fprintf(stderr, "gnomon: internal fault: %s\n", error.what());
    return gnomon::app::kOurFault;
  }
}
