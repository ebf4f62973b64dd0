// Any evidence: it is refused, or it can be written and is then read the same.
#include <algorithm>

#include "harness/fuzz/bytes_in_file.h"
#include "harness/protocol/evidence_document.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

using namespace zeroproof;

namespace {

const suites::Case& example() {
    static const suites::Case c = suites::read_family(R"({
            "family": "f", "purpose": "p", "ranks": 2, "model": "echo",
            "parameters": [{"name": "a", "shape": [2]}, {"name": "b", "shape": []}],
            "units": [["a"], ["b", "a"]], "program": ["window", "evaluate"]})",
                                                      "example")
                                      .front();
    return c;
}

}  // namespace

// The JSON file, a zero byte, the tensors.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const harness::BytesInFile file;
    static const harness::TemporaryFolder again;
    const std::uint8_t* const end = data + size;
    const std::uint8_t* const zero = std::find(data, end, std::uint8_t{0});
    file.put({zero == end ? end : zero + 1, end});
    const std::string json(data, zero);
    const harness::PartOfCase part{&example(), {2, 0, 0, 3, {}, {}, {}}, 0};
    harness::RankResult result;
    try {
        result = harness::read_evidence(
            json, "rank-0.json",
            [&] {
                return harness::SafetensorsReader(
                    harness::UntrustedFile::demand(file.folder(), "bytes", 1 << 20));
            },
            part, 0);
    } catch (const scenarios::BadInput&) {
        return 0;  // told by a message
    }
    harness::write_evidence(again.path(), part, 0, result);
    const harness::RankResult same = harness::read_evidence(again.path(), part, 0);
    if (same.status != result.status || same.message != result.message ||
        same.evidence.snapshots.size() != result.evidence.snapshots.size() ||
        same.evidence.collectives.size() != result.evidence.collectives.size())
        std::abort();
    return 0;
}
