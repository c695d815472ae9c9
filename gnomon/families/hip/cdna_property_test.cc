// What must hold of the picks of family `cdna` on any device: the suite of gemm/cdna_properties.h.

#include "gnomon/families/hip/cdna_family.h"
#include "gnomon/gemm/cdna_properties.h"

namespace gnomon {
namespace {

INSTANTIATE_TEST_SUITE_P(Cdna, PicksOnAmd, OnCdnaCards(hip::CdnaFamily()));

}  // namespace
}  // namespace gnomon
