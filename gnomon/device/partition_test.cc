// Parts of shipped devices: what scales, what stays, and that every part agrees with itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gnomon/device/check.h"
#include "gnomon/device/device.h"

namespace gnomon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Device Shipped(std::string_view id) {
  return ReadDevice(std::string(GNOMON_SOURCE_DIR "/devices/") + std::string(id) + ".toml").value();
}

void ExpectConsistent(const Device& device) {
  for (const DeviceCheck& check : CheckDevice(device))
    EXPECT_TRUE(check.holds) << device.name << ": " << check.what;
}

TEST(WithUnits, ScalesPeaksAndUnitMemoriesAndKeepsTheFileInAgreement) {
  const Device before = Shipped("host-x86-64-avx2");
  const Device more = WithUnits(before, 2 * before.units);
  EXPECT_EQ(more.units, 2 * before.units);
  EXPECT_DOUBLE_EQ(more.SustainedPeak(DType::kFp32).value,
                   2 * before.SustainedPeak(DType::kFp32).value);
  EXPECT_DOUBLE_EQ(more.memory[0].bandwidth.value, 2 * before.memory[0].bandwidth.value);
  EXPECT_DOUBLE_EQ(more.MainMemory().bandwidth.value, before.MainMemory().bandwidth.value);
  const Device one = WithUnits(more, 1);
  EXPECT_DOUBLE_EQ(one.MainMemory().bandwidth.value, before.MainMemory().unit_bandwidth.value);
  EXPECT_DOUBLE_EQ(one.facts.at("units.count").value, 1);
  EXPECT_THAT(one.facts.at("units.count").source, HasSubstr("scaled from"));
  ExpectConsistent(one);
}

TEST(WithUnits, AnyBudgetOfAnyDeviceIsConsistentAndNeverFasterThanALargerOne) {
  for (const char* id : {"mi250x", "mi300x", "mi300a", "mi308x", "mi350x", "h100", "b300"}) {
    const Device whole = Shipped(id);
    Device less = WithUnits(whole, 1);
    ExpectConsistent(less);
    for (const int units : {2, 7, 32, 38, whole.units / 2, whole.units}) {
      const Device more = WithUnits(whole, units);
      ExpectConsistent(more);
      EXPECT_EQ(more.units, units);
      if (units <= less.units) continue;
      EXPECT_GT(more.SustainedPeak(DType::kBf16).value, less.SustainedPeak(DType::kBf16).value);
      for (size_t i = 0; i < more.memory.size(); ++i) {
        EXPECT_GE(more.memory[i].bandwidth.value, less.memory[i].bandwidth.value)
            << id << " " << units << " " << more.memory[i].name;
        EXPECT_EQ(more.memory[i].capacity.value, whole.memory[i].capacity.value);
      }
      less = more;
    }
    EXPECT_EQ(less.MainMemory().bandwidth.value, whole.MainMemory().bandwidth.value);
  }
}

TEST(Partition, SingleDiesOfMi300xHave38UnitsAndAnEighthOfWhatIsShared) {
  const Device whole = Shipped("mi300x"), die = Partition(whole, "cpx").value();
  EXPECT_EQ(die.units, 38);
  EXPECT_EQ(die.dies, 1);
  EXPECT_EQ(Partition(Shipped("mi350x"), "cpx")->units, 32);
  EXPECT_EQ(Partition(Shipped("mi308x"), "cpx")->units, 20);
  EXPECT_DOUBLE_EQ(die.MainMemory().capacity.value, 24e9);
  EXPECT_DOUBLE_EQ(die.MainMemory().bandwidth.value, whole.MainMemory().bandwidth.value / 8);
  EXPECT_DOUBLE_EQ(die.FindMemory("llc")->capacity.value, 32.0 * 1024 * 1024);
  // An instance of the second level belongs to a die: as large as before, an eighth of all of them.
  EXPECT_DOUBLE_EQ(die.FindMemory("l2")->capacity.value, whole.FindMemory("l2")->capacity.value);
  EXPECT_DOUBLE_EQ(die.FindMemory("l2")->bandwidth.value,
                   whole.FindMemory("l2")->bandwidth.value / 8);
  EXPECT_DOUBLE_EQ(die.FindMemory("l2")->unit_bandwidth.value,
                   whole.FindMemory("l2")->unit_bandwidth.value);
  EXPECT_DOUBLE_EQ(die.SustainedPeak(DType::kFp16).value,
                   whole.SustainedPeak(DType::kFp16).value / 8);
  EXPECT_EQ(die.sustained_clock.value, whole.sustained_clock.value);
  EXPECT_EQ(die.shared_memory.value, whole.shared_memory.value);
  EXPECT_DOUBLE_EQ(die.facts.at("memory.llc.capacity_mib").value, 32);
  EXPECT_THAT(die.facts.at("units.count").source, HasSubstr("one of 8 partitions (cpx)"));
}

TEST(Partition, PartsOfEveryModeAddUpToTheWholeAndAgreeWithThemselves) {
  for (const char* id : {"mi300x", "mi300a", "mi308x", "mi325x", "mi350x", "mi355x"}) {
    const Device whole = Shipped(id);
    for (const std::string_view mode : PartitionModes(whole)) {
      const Device part = Partition(whole, mode).value();
      ExpectConsistent(part);
      const int parts = whole.units / part.units;
      EXPECT_EQ(parts * part.units, whole.units);
      EXPECT_EQ(parts * part.dies, whole.dies);
      EXPECT_DOUBLE_EQ(parts * part.tdp_watts, whole.tdp_watts);
      EXPECT_DOUBLE_EQ(parts * part.MainMemory().bandwidth.value,
                       whole.MainMemory().bandwidth.value);
      EXPECT_EQ(parts == 1, mode == "spx") << id << " " << mode;
    }
  }
}

TEST(Partition, ModesAreThoseThatTheDiesAllow) {
  EXPECT_THAT(PartitionModes(Shipped("mi300x")), ElementsAre("spx", "dpx", "qpx", "cpx"));
  EXPECT_THAT(PartitionModes(Shipped("mi300a")), ElementsAre("spx", "dpx", "tpx", "cpx"));
  EXPECT_THAT(PartitionModes(Shipped("b200")), IsEmpty());
  EXPECT_THAT(PartitionModes(Shipped("mi250x")), IsEmpty());
  EXPECT_EQ(Partition(Shipped("mi300x"), "spx")->units, 304);
  EXPECT_EQ(
      Partition(Shipped("mi300x"), "cpxx").error().message,
      "unknown partition mode of mi300x 'cpxx'; nearest is 'cpx' (valid: spx, dpx, qpx, cpx)");
  EXPECT_THAT(Partition(Shipped("h100"), "cpx").error().message,
              HasSubstr("h100 has no partitions"));
}

}  // namespace
}  // namespace gnomon
