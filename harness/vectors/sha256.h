// Checksums of files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "harness/protocol/untrusted_file.h"

namespace zeroproof::harness {

// FIPS 180-4, by OpenSSL.
class Sha256 {
  public:
    Sha256();
    void add(std::span<const std::byte> bytes);
    std::string hex();  // once, at the end: 64 lower-case digits

  private:
    struct Free {
        void operator()(void* context) const;
    };
    std::unique_ptr<void, Free> context_;
};

std::string sha256_of(std::string_view text);
std::string sha256_of(const UntrustedFile& file);

}  // namespace zeroproof::harness
