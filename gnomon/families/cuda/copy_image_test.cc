#include "gnomon/families/cuda/copy_image.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace gnomon::cuda {
namespace {

TEST(CopyImage, KInnermostSwizzlesChunksByTheRow) {
  EXPECT_EQ(ImageAt(false, 0, 0, 2), 0);
  EXPECT_EQ(ImageAt(false, 0, 63, 2), 126);
  EXPECT_EQ(ImageAt(false, 1, 0, 2), 128 + 16);            // chunk 0 of row 1 stands at 1
  EXPECT_EQ(ImageAt(false, 3, 17, 2), 3 * 128 + 16 + 2);   // chunk 2 at 2 ^ 3
  EXPECT_EQ(ImageAt(false, 8, 17, 2), 8 * 128 + 32 + 2);   // the pattern repeats after 8 rows
  EXPECT_EQ(ImageAt(false, 7, 31, 4), 7 * 128 + 12);       // chunk 7 at 0
  EXPECT_EQ(ImageAt(false, 5, 100, 1), 5 * 128 + 48 + 4);  // chunk 6 at 6 ^ 5
}

TEST(CopyImage, KOutermostComesInBoxesOf64Rows) {
  EXPECT_EQ(ImageAt(true, 0, 0, 2), 0);
  EXPECT_EQ(ImageAt(true, 63, 0, 2), 126);
  EXPECT_EQ(ImageAt(true, 64, 0, 2), 8192);                            // the next box
  EXPECT_EQ(ImageAt(true, 70, 5, 2), 8192 + 5 * 128 + (5 << 4) + 12);  // chunk 0 of line 5
  EXPECT_EQ(ImageLines(true, 16), 64);
  EXPECT_EQ(ImageLines(true, 96), 128);
  EXPECT_EQ(ImageLines(false, 96), 96);
}

TEST(CopyImage, EveryElementHasAPlaceOfItsOwnAndNoByteIsLeftOut) {
  for (const bool outer : {false, true}) {
    for (const int size : {1, 2, 4}) {
      if (outer && size != 2) continue;
      const int rows = 128, depth = kLineBytes / size;
      std::set<int> places;
      for (int row = 0; row < rows; ++row)
        for (int k = 0; k < depth; ++k) places.insert(ImageAt(outer, row, k, size));
      EXPECT_EQ(static_cast<int>(places.size()), rows * depth);
      EXPECT_EQ(*places.begin(), 0);
      EXPECT_EQ(*places.rbegin(), ImageLines(outer, rows) * kLineBytes - size);
    }
  }
}

TEST(CopyImage, ShiftedLinesAreThoseThatStartInsideAWord) {
  for (const int size : {1, 2}) {
    for (int ahead = 0; ahead < 4; ahead += size) {
      for (int pitch = 0; pitch < 4; pitch += size) {
        const ShiftedLines shifted = ShiftedLinesOf(ahead, pitch, size);
        for (int line = 0; line < 16; ++line) {
          const bool inside = (ahead + line * pitch) % 4 != 0;
          const bool named = line >= shifted.first && (line - shifted.first) % shifted.step == 0;
          EXPECT_TRUE(named || !inside) << size << " " << ahead << " " << pitch << " " << line;
          if (shifted.step == 2) {
            EXPECT_EQ(named, inside) << ahead << " " << pitch << " " << line;
          }
        }
      }
    }
  }
}

TEST(CopyImage, WordsHoldABeginningInsideOne) {
  EXPECT_EQ(WordsOf(0, 0), 0);
  EXPECT_EQ(WordsOf(1, 0), 1);
  EXPECT_EQ(WordsOf(4, 1), 2);
  EXPECT_EQ(WordsOf(78, 2), 20);  // 39 elements of 16 bits
  EXPECT_EQ(WordsOf(128, 0), 32);
  EXPECT_EQ(WordsOf(128, 2), 33);  // the word in the side buffer
  EXPECT_EQ(WordsOf(124, 3), 32);
}

}  // namespace
}  // namespace gnomon::cuda
