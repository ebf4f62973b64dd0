// Any declaration: it is read or refused.
#include <cstdint>
#include <string_view>

#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"

using namespace zeroproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        (void)suites::read_declaration({reinterpret_cast<const char*>(data), size}, "declaration");
    } catch (const scenarios::BadInput&) {
        // Told by a message.
    }
    return 0;
}
