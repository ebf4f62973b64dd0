// Bytes that a fuzzer has made up, as a file: what is fuzzed opens files itself.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>

#include "harness/temporary_folder.h"

namespace zeroproof::harness {

class BytesInFile {
  public:
    std::filesystem::path folder() const { return folder_.path(); }
    std::filesystem::path path() const { return folder_.path() / "bytes"; }

    void put(std::span<const std::uint8_t> bytes) const {
        const int descriptor = open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (descriptor < 0) std::abort();
        if (write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            std::abort();
        close(descriptor);
    }

  private:
    TemporaryFolder folder_;
};

}  // namespace zeroproof::harness
