// gnomon device list | show | check | calibrate.

#include <fmt/format.h>

#include <memory>

#include "apps/command.h"
#include "gnomon/base/nearest.h"
#include "gnomon/base/progress.h"
#include "gnomon/device/calibrate.h"
#include "gnomon/device/check.h"
#include "gnomon/device/device.h"
#include "gnomon/families/cuda/calibrate_gpu.h"
#include "gnomon/report/device_report.h"
#include "gnomon/train/load_engine.h"

namespace gnomon::app {
namespace {

int List(bool json) {
  std::vector<Device> devices;
  for (const std::string& id : DeviceIds()) {
    Result<Device> device = FindDevice(id);
    if (!device) return Fail(device.error());
    devices.push_back(*std::move(device));
  }
  return Print(json, DeviceListText(devices), DeviceListJson(devices));
}

int Show(const std::string& id, bool json) {
  const Result<Device> device = FindDevice(id);
  if (!device) return Fail(device.error());
  return Print(json, DeviceText(*device), DeviceJson(*device));
}

int Check(const std::vector<std::string>& paths, bool json) {
  int code = kFine;
  Json list = Json::array();
  for (const std::string& path : paths) {
    const Result<Device> device = ReadDevice(path);
    if (!device) {
      code = std::max(code, Fail(device.error()));
      continue;
    }
    const std::vector<DeviceCheck> checks = CheckDevice(*device);
    for (const DeviceCheck& check : checks)
      if (!check.holds) code = std::max<int>(code, kNegativeVerdict);
    if (json)
      list.push_back(CheckJson(path, *device, checks));
    else if (const int printed = Print(CheckText(path, *device, checks)); printed != kFine)
      return printed;
  }
  if (json)
    if (const int printed = Print(JsonText({{"files", list}})); printed != kFine) return printed;
  return code;
}

struct CalibrateArguments {
  std::string on = "host", output;
  int threads = 0;
  bool json = false;
};

// Verdict, readings that a device file has no key for, next step.
std::string GpuText(const cuda::GpuCalibration& calibration, const std::string& path) {
  std::string text = fmt::format("measured {} on {}, written to {}\n", calibration.base.id,
                                 calibration.readings.gpu.name, path);
  for (const cuda::ReachedRate& rate : calibration.readings.rates) {
    constexpr double kTera = 1e12;
    text +=
        fmt::format("  {:9} {:6.1f} TFLOP/s sustained, {:6.1f} in a burst ({}", Name(rate.dtype),
                    rate.sustained.value / kTera, rate.burst.value / kTera, rate.config);
    if (rate.clocks.sm_mhz > 0)
      text += fmt::format(", {:.0f} MHz, {:.0f} W", rate.clocks.sm_mhz, rate.clocks.power_watts);
    text += ")\n";
  }
  for (const std::string& skipped : calibration.readings.skipped)
    text += fmt::format("  not measured: {}\n", skipped);
  return text + fmt::format("next: gnomon device show {}\n", path);
}

int CalibrateCuda(int ordinal, const CalibrateArguments& arguments) {
  const Result<cuda::GpuCalibration> calibration = [&] {
    Progress progress(fmt::format("calibrating cuda:{}", ordinal), 0);
    return cuda::CalibrateGpu(ordinal, [&](int done, int total, const std::string& what) {
      progress.SetTotal(total);
      progress.Update(done, what);
    });
  }();
  if (!calibration) return Fail(calibration.error());
  const std::string path =
      arguments.output.empty() ? calibration->base.id + "-measured.toml" : arguments.output;
  if (const Status written = WriteOverlay(calibration->measured, calibration->base, path);
      !written.ok())
    return Fail(written.error());
  return Print(arguments.json, GpuText(*calibration, path), DeviceJson(calibration->measured));
}

int Calibrate(const CalibrateArguments& arguments) {
  if (arguments.on.starts_with("cuda")) {
    const Result<int> ordinal = cuda::ParseCudaPlace(arguments.on);
    if (!ordinal) return Fail(BadInput(ordinal.error().message, "--on"));
    return CalibrateCuda(*ordinal, arguments);
  }
  if (arguments.on != "host") {
    constexpr std::string_view kPlaces[] = {"host", "cuda:0"};
    return Fail(BadInput(UnknownName("place", arguments.on, kPlaces), "--on"));
  }
  const std::string path = arguments.output.empty() ? HostOverlayPath() : arguments.output;
  Result<Device> device = [&] {
    Progress progress("calibrating host", 0);
    return CalibrateHost({.threads = arguments.threads,
                          .progress = [&](int done, int total, const std::string& what) {
                            progress.SetTotal(total);
                            progress.Update(done, what);
                          }});
  }();
  if (!device) return Fail(device.error());

  // The framework's own costs need LibTorch; without it the model keeps its documented defaults.
  std::string note;
  if (const auto engine = train::LoadEngine(); engine.ok()) {
    const Progress progress("calibrating LibTorch", 0);
    if (const Status status = (*engine)->CalibrateFramework(*device); !status.ok())
      return Fail(status.error());
  } else {
    note = "LibTorch was not measured: " + engine.error().message + "\n";
  }
  if (const Status written = WriteOverlay(*device, path); !written.ok())
    return Fail(written.error());
  return Print(
      arguments.json,
      fmt::format(
          "measured {} facts of this host, written to {}\n{}next: gnomon device show host\n",
          device->facts.size(), path, note),
      DeviceJson(*device));
}

}  // namespace

void AddDeviceCommands(CLI::App& app, Chosen& chosen) {
  CLI::App* device =
      app.add_subcommand("device", "device descriptions: list, show, check, calibrate");
  device->require_subcommand(1);

  auto json = std::make_shared<bool>(false);
  AddLeaf(*device, "list", "the devices there are", "gnomon device list", json.get())
      ->callback([&chosen, json] { chosen = [json] { return List(*json); }; });

  auto id = std::make_shared<std::string>();
  CLI::App* show = AddLeaf(*device, "show", "one device, every number with its source",
                           "gnomon device show mi300x", json.get());
  show->add_option("id", *id, "device id or TOML file")->required();
  show->callback([&chosen, json, id] { chosen = [=] { return Show(*id, *json); }; });

  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* check =
      AddLeaf(*device, "check", "do the numbers of device files agree with each other?",
              "gnomon device check devices/h100.toml", json.get());
  check->add_option("files", *paths, "TOML files")->required();
  check->callback([&chosen, json, paths] { chosen = [=] { return Check(*paths, *json); }; });

  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* calibrate =
      AddLeaf(*device, "calibrate", "measure the present device (a minute or two)",
              "gnomon device calibrate --on host -o host.toml", &arguments->json);
  calibrate->add_option("--on", arguments->on, "what to measure: host, cuda:N")
      ->capture_default_str();
  calibrate->add_option(
      "-o,--output", arguments->output,
      "overlay file (default: where device `host` looks for it; ID-measured.toml of a GPU)");
  calibrate->add_option("--threads", arguments->threads, "cores to use (0: all)")
      ->check(CLI::Range(0, 4096));
  calibrate->callback([&chosen, arguments] { chosen = [=] { return Calibrate(*arguments); }; });
}

}  // namespace gnomon::app
