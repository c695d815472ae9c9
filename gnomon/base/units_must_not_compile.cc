// Compiled by two tests of CMakeLists.txt, never linked: units of one kind add, units of two do
// not. GNOMON_MIX_UNITS chooses the half that the compiler must refuse.

#include "gnomon/base/units.h"

double Sum(gnomon::Seconds time, gnomon::Bytes bytes) {
#ifdef GNOMON_MIX_UNITS
  return (time + bytes).value;
#else
  return (time + time).value + (bytes + bytes).value;
#endif
}
