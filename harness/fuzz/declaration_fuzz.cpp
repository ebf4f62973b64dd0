// Any declaration: it is read or refused.
#include <cstdint>
#include <string_view>

#include "suites/conformance/declaration_reader.h"
#include "suites/conformance/json_reader.h"

using namespace zeroproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        (void)suites::read_declaration({reinterpret_cast<const char*>(data), size}, "declaration");
    } catch (const suites::BadInput&) {
        // Told by a message.
    }
    return 0;
}
