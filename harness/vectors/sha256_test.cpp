#include "harness/vectors/sha256.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

// From FIPS 180-2, appendix B.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kMillion = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, IsThatOfTheStandard) {
    EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_of("abc"), kAbc);
    EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_of(std::string(1'000'000, 'a')), kMillion);
}

TEST(Sha256, OfAFileIsThatOfItsBytesHoweverManyBlocksTheyFill) {
    const TemporaryFolder folder;
    for (const std::size_t bytes : {0u, 3u, 1u << 20, (1u << 20) + 1, 3u << 20}) {
        const std::string text(bytes, 'x');
        std::ofstream(folder.path() / "file", std::ios::binary) << text;
        EXPECT_EQ(sha256_of(UntrustedFile::demand(folder.path(), "file", 1 << 30)), sha256_of(text))
            << bytes;
    }
}

}  // namespace
}  // namespace zeroproof::harness
