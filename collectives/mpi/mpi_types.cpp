#include "collectives/mpi/mpi_types.h"

#include <fmt/format.h>

#include <climits>
#include <span>

#include "collectives/mpi/mpi_world.h"
#include "collectives/reduce.h"

namespace zeroproof::collectives {

namespace {

void demand(int code, std::string_view call) {
    if (code != MPI_SUCCESS)
        throw MpiFailure(fmt::format("{} failed: {}", call, mpi_error_text(code)));
}

constexpr Reduction kPairwise[] = {Reduction::sum, Reduction::max, Reduction::min};

// What MPI calls, on elements of the type itself or of one that is derived from it. MPI passes the
// type but nothing of ours: hence a function for each.
template <DType kType, Reduction kReduction>
void reduce_pair(void* lower, void* upper, int* count, MPI_Datatype* type) {
    MPI_Count bytes = 0;
    MPI_Type_size_x(*type, &bytes);
    const std::size_t elements =
        static_cast<std::size_t>(*count) * static_cast<std::size_t>(bytes) / memory::size_of(kType);
    const std::byte* const inputs[] = {static_cast<const std::byte*>(lower),
                                       static_cast<const std::byte*>(upper)};
    std::byte* const output = static_cast<std::byte*>(upper);
    reduce_elements(kType, kReduction, inputs, std::span(&output, 1), elements);
}

template <DType kType>
constexpr std::array<MPI_User_function*, std::size(kPairwise)> kFunctionsOf = {
    &reduce_pair<kType, Reduction::sum>, &reduce_pair<kType, Reduction::max>,
    &reduce_pair<kType, Reduction::min>};

MPI_User_function* function_of(DType type, std::size_t reduction) {
    switch (type) {
        case DType::fp32: return kFunctionsOf<DType::fp32>[reduction];
        case DType::fp16: return kFunctionsOf<DType::fp16>[reduction];
        case DType::bf16: return kFunctionsOf<DType::bf16>[reduction];
        case DType::fp64: return kFunctionsOf<DType::fp64>[reduction];
        case DType::int8: return kFunctionsOf<DType::int8>[reduction];
        case DType::int32: return kFunctionsOf<DType::int32>[reduction];
        case DType::int64: return kFunctionsOf<DType::int64>[reduction];
    }
    throw std::logic_error("no such type");
}

}  // namespace

std::string mpi_error_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error {}", code);
    return {text, static_cast<std::size_t>(length)};
}

MPI_Datatype mpi_type_of(DType type) {
    switch (type) {
        case DType::fp32: return MPI_FLOAT;
        case DType::fp16:
        case DType::bf16: return MPI_UINT16_T;
        case DType::fp64: return MPI_DOUBLE;
        case DType::int8: return MPI_INT8_T;
        case DType::int32: return MPI_INT32_T;
        case DType::int64: return MPI_INT64_T;
    }
    throw std::logic_error("no such type");
}

MpiCount::MpiCount(DType type, std::size_t elements, int largest)
    : count_(static_cast<int>(elements)), type_(mpi_type_of(type)) {
    const auto most = static_cast<std::size_t>(largest);
    if (elements <= most) return;
    // `pieces` pieces of `largest` elements, and the rest behind them.
    const std::size_t pieces = elements / most;
    const auto rest = static_cast<int>(elements % most);
    if (pieces > std::size_t{INT_MAX})
        throw MpiFailure(fmt::format("{} elements are too many for one operation", elements));
    MPI_Datatype piece = MPI_DATATYPE_NULL;
    MPI_Datatype remainder = MPI_DATATYPE_NULL;
    demand(MPI_Type_contiguous(largest, type_, &piece), "MPI_Type_contiguous");
    demand(MPI_Type_contiguous(rest, type_, &remainder), "MPI_Type_contiguous");
    int counts[] = {static_cast<int>(pieces), 1};
    MPI_Aint places[] = {0, static_cast<MPI_Aint>(pieces * most * memory::size_of(type))};
    MPI_Datatype types[] = {piece, remainder};
    demand(MPI_Type_create_struct(2, counts, places, types, &type_), "MPI_Type_create_struct");
    is_derived_ = true;
    count_ = 1;
    MPI_Type_free(&piece);
    MPI_Type_free(&remainder);
    demand(MPI_Type_commit(&type_), "MPI_Type_commit");
}

MpiCount::~MpiCount() {
    if (is_derived_) MPI_Type_free(&type_);
}

MPI_Op MpiReductions::of(DType type, Reduction reduction, bool is_derived) {
    // 16-bit floats are nothing that MPI could add, and 8-bit sums saturate where Open MPI 4.1 adds
    // them by vector instructions.
    if (!is_derived && reduction == Reduction::sum && memory::size_of(type) >= 4) return MPI_SUM;
    // MPI says nothing of NaN, so the order of floats is ours.
    if (!is_derived && reduction != Reduction::sum && !memory::is_floating(type))
        return reduction == Reduction::max ? MPI_MAX : MPI_MIN;
    std::size_t r = 0;
    while (kPairwise[r] != reduction) ++r;
    MPI_Op& op = own_[static_cast<std::size_t>(type) * kReductions + r];
    constexpr int kCommutes = 1;
    if (op == MPI_OP_NULL)
        demand(MPI_Op_create(function_of(type, r), kCommutes, &op), "MPI_Op_create");
    return op;
}

void MpiReductions::free() {
    for (MPI_Op& op : own_)
        if (op != MPI_OP_NULL) MPI_Op_free(&op);
}

}  // namespace zeroproof::collectives
