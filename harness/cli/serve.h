// The built-in reference as a program that speaks the protocol.
#pragma once

#include <filesystem>
#include <string>

namespace zeroproof::harness {

// Runs every case in `cases` and writes evidence into `results`, as docs/protocol.md describes; all
// ranks are threads of this process. Returns the exit code. Throws scenarios::BadInput and
// Unwritable.
int serve(const std::string& subject, const std::filesystem::path& cases,
          const std::filesystem::path& results);

}  // namespace zeroproof::harness
