#pragma once

/// What every command shares: registration, printing, and the exit codes of DESIGN.md.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "gnomon/base/result.h"
#include "gnomon/report/json.h"

namespace gnomon::app {

enum ExitCode { kFine = 0, kNegativeVerdict = 1, kBadUsage = 2, kOurFault = 3 };

/// The command that the arguments chose; set by its CLI11 callback, run by main.
using Chosen = std::function<int()>;

/// Writes results to standard output; a full disk or a closed pipe is kOurFault with a message.
int Print(std::string_view text);
/// Text, or its JSON under --json.
int Print(bool json, const std::string& text, const Json& value);
/// "gnomon: where: message" on standard error; the exit code of the error.
int Fail(const Error& error);

/// A leaf command with `--json` and an example in its help.
CLI::App* AddLeaf(CLI::App& parent, const std::string& name, const std::string& help,
                  const std::string& example, bool* json);

/// A check for whole-number options: decimal, no leading zeros (CLI11 takes 010 for eight).
const CLI::Validator& Decimal();

void AddDeviceCommands(CLI::App& app, Chosen& chosen);
void AddGemmCommands(CLI::App& app, Chosen& chosen);
void AddRankCommand(CLI::App& gemm, Chosen& chosen);
void AddAccuracyCommand(CLI::App& gemm, Chosen& chosen);
void AddCostCommands(CLI::App& app, Chosen& chosen);
void AddCodesignCommand(CLI::App& app, Chosen& chosen);
void AddTrainCommand(CLI::App& app, Chosen& chosen);

}  // namespace gnomon::app
