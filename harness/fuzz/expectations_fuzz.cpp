// Any list of expected failures: it is read or refused.
#include "harness/expectations.h"
#include "harness/fuzz/bytes_in_file.h"
#include "scenarios/json_reader.h"

using namespace zeroproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const harness::BytesInFile file;
    file.put({data, size});
    try {
        (void)harness::read_expectations(file.path().string());
    } catch (const scenarios::BadInput&) {
        // Told by a message.
    }
    return 0;
}
