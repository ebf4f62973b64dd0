// The collectives that ZeRO is made of, each started and waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "memory/dtype.h"

namespace zeroproof::collectives {

using memory::DType;

enum class Op {
    broadcast,
    reduce,
    all_reduce,
    reduce_scatter,
    all_gather,
    all_to_all,
    send,
    receive
};
inline constexpr Op kCollectiveOps[] = {Op::broadcast,      Op::reduce,     Op::all_reduce,
                                        Op::reduce_scatter, Op::all_gather, Op::all_to_all};

// `mean` is the sum divided by the group's size; of integers, truncated toward zero. Sums of
// integers wrap. A maximum or minimum over a NaN is NaN. ThreadWorld adds ranks in ascending order,
// fp16 and bf16 in fp32, rounded once; a backend that hands partial sums from rank to rank, as
// MpiWorld does, adds in an order of its own and rounds them at each hop, where a sum of fp16 may
// overflow though its mean would not. TRANSPORT.ACCUMULATION of the conformance suite tells.
enum class Reduction { none, sum, mean, max, min };

std::string_view name_of(Op op);
// The operation of that name, if there is one.
std::optional<Op> op_from_name(std::string_view name);
// Whether it combines elements of several ranks.
bool is_reduction(Op op);
std::string_view name_of(Reduction reduction);

// One rank's part of an operation over a group of N ranks. Elements counted as they lie in memory:
//   broadcast       in = out = count            input is read on the root alone, elsewhere it may
//                                               be null; it may be the output
//   reduce          in = count, out = count on the root, 0 elsewhere
//   all_reduce      in = out = count            in place: output == input
//   reduce_scatter  in = N * count, out = count in place: output == input + rank * count
//   all_gather      in = count, out = N * count in place: input == output + rank * count
//   all_to_all      in = out = N * count        block i of the input goes to rank i
//   send, receive   in = count / out = count    `peer` is the other rank
// Addresses need no alignment. The N blocks of `count` elements together are fewer bytes than a
// size_t can count. Input and output overlap in no other way than given.
struct Operation {
    Op op = Op::all_reduce;
    DType type = DType::fp32;
    Reduction reduction = Reduction::none;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t in_elements = 0;
    std::size_t out_elements = 0;
    int peer = -1;  // root of broadcast and reduce, other rank of send and receive, in the group

    std::size_t in_bytes() const { return in_elements * memory::size_of(type); }
    std::size_t out_bytes() const { return out_elements * memory::size_of(type); }
    bool same_kind_as(const Operation& other) const {
        return op == other.op && type == other.type && reduction == other.reduction;
    }
};

// "all_reduce of 12 fp32 to 12, sum"
std::string describe(const Operation& operation);

// The operation breaks a rule above, or its ranks disagree about it.
class BadOperation : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

// An operation in flight: until it was waited for, its input must not be written and its output
// neither read nor written, and both must stay allocated.
class Work {
  public:
    virtual ~Work() = default;
    // Returns once the output holds the result and the input may be written again.
    virtual void wait() = 0;
};

// Owns work in flight. Waited for at most once; if it was not, its end waits.
class [[nodiscard]] Request {
  public:
    Request() = default;
    explicit Request(std::unique_ptr<Work> work) : work_(std::move(work)) {}
    bool in_flight() const { return work_ != nullptr; }
    void wait() {
        if (const auto work = std::move(work_)) work->wait();
    }

  private:
    std::unique_ptr<Work> work_;
};

// One rank's end of a group. Operations of a group are matched in the order in which each rank
// starts them; sends and receives, in the order of their pair.
class Communicator {
  public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0;
    int size() const { return static_cast<int>(world_ranks().size()); }
    // World ranks of the group, in the order of their ranks in it.
    virtual std::span<const int> world_ranks() const = 0;

    // Throws BadOperation for an operation that breaks the rules of `Operation`.
    virtual Request start(const Operation& operation) = 0;
    // A group for each colour, ranked by (key, rank). Collective. A negative colour gets none.
    virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

    // Over `count` elements of `type`, as in the table of Operation. reduce_scatter and all_gather
    // count what one rank gets or gives.
    Request all_reduce(const std::byte* input, std::byte* output, std::size_t count, DType type,
                       Reduction reduction);
    Request reduce_scatter(const std::byte* input, std::byte* output, std::size_t count, DType type,
                           Reduction reduction);
    Request all_gather(const std::byte* input, std::byte* output, std::size_t count, DType type);
    Request broadcast(std::byte* data, std::size_t count, DType type, int root);
};

// A rank's new group, as all of them choose.
struct SplitGroup {
    std::vector<int> world_ranks;  // empty for a negative colour
    int rank = 0;                  // in the new group
};
// For backends: what `split` makes of the choices that all ranks of `group` give here. Collective.
SplitGroup agree_on_split(Communicator& group, int color, int key);

// Throws BadOperation unless `operation` obeys the rules for this rank of a group of `size`.
void check(const Operation& operation, int rank, int size);

}  // namespace zeroproof::collectives
