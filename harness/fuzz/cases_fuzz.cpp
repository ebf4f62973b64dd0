// Any family of cases: it is refused, or each case of it is one that can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "suites/conformance/case_writer.h"
#include "suites/conformance/family.h"

using namespace zeroproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Sweeps multiply: a short text may ask, quite rightly, for a hundred thousand long programs.
    constexpr std::size_t kMostCases = 100;
    std::vector<suites::Case> cases;
    try {
        cases = suites::read_family({reinterpret_cast<const char*>(data), size}, "family");
    } catch (const scenarios::BadInput&) {
        return 0;  // told by a message
    }
    if (cases.size() > kMostCases) return 0;
    for (const suites::Case& c : cases) {
        const scenarios::Json written = suites::case_to_json(c);
        const auto again = suites::read_family(written.dump(), "again");
        if (again.size() != 1 || suites::case_to_json(again.front()) != written) std::abort();
    }
    return 0;
}
