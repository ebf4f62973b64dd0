// Any file: it is refused, or every tensor of it can be read.
#include "harness/fuzz/bytes_in_file.h"
#include "harness/protocol/safetensors.h"
#include "scenarios/json_reader.h"

using namespace zeroproof;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const harness::BytesInFile file;
    file.put({data, size});
    try {
        const harness::SafetensorsReader reader(
            harness::UntrustedFile::demand(file.folder(), "bytes", 1 << 20));
        std::size_t bytes = 0;
        for (const auto& [name, place] : reader.tensors()) {
            if (place.type == harness::TensorType::u8)
                (void)reader.bytes(name, place.shape);
            else
                (void)reader.floats(name, place.shape);
            bytes += place.end - place.begin;
        }
        if (bytes > size) std::abort();
    } catch (const scenarios::BadInput&) {
        // Told by a message.
    }
    return 0;
}
