#include "harness/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace zeroproof::harness {

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "zeroproof-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw std::filesystem::filesystem_error("cannot make a temporary folder", pattern,
                                                {errno, std::generic_category()});
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;  // what cannot be removed is left to the system
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace zeroproof::harness
