#include "collectives/algorithms/carry_out.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/reduce.h"

namespace zeroproof::collectives {

namespace {

// Longer messages travel in pieces, so that one is reduced while the next arrives.
constexpr std::size_t kPieceBytes = 128 * 1024;

std::byte* room(std::vector<std::byte>& memory, std::size_t bytes) {
    if (memory.size() < bytes) memory.resize(bytes);
    return memory.data();
}

void copy_bytes(std::byte* target, const std::byte* source, std::size_t bytes) {
    if (bytes > 0 && target != source) std::memcpy(target, source, bytes);
}

// One rank on its way through the rounds of one operation.
class Conductor {
  public:
    Conductor(Communicator& group, const Operation& operation, const Shape& shape,
              Workspace& workspace, LinkElements& sent)
        : group_(group),
          operation_(operation),
          shape_(shape),
          workspace_(workspace),
          sent_(sent),
          width_(memory::size_of(operation.type)),
          own_(shape.part(group.rank())) {}

    void run(const Algorithm& algorithm) {
        begin();
        for (const Round& round : algorithm.schedule(shape_, group_.rank())) run_round(round);
        end();
    }

  private:
    // A piece of a message that is under way.
    struct Piece {
        Range range;
        std::byte* landing;  // of those that are reduced
        Request request;
    };

    std::size_t bytes_of(const Range& range) const { return range.elements * width_; }

    // The rounds find this rank's contribution in the tensor, and leave the result there.
    void begin() {
        const std::size_t all = shape_.elements * width_;
        const bool output_is_whole = operation_.out_elements == shape_.elements;
        tensor_ = output_is_whole ? operation_.output : room(workspace_.tensor, all);
        source_ = tensor_;
        switch (operation_.op) {
            case Op::all_to_all:
                source_ = operation_.input;
                copy_bytes(tensor_ + own_.begin * width_, source_ + own_.begin * width_,
                           bytes_of(own_));
                break;
            case Op::all_gather:
                copy_bytes(tensor_ + own_.begin * width_, operation_.input, bytes_of(own_));
                break;
            case Op::broadcast:
                if (group_.rank() == shape_.root) copy_bytes(tensor_, operation_.input, all);
                break;
            default: copy_bytes(tensor_, operation_.input, all);
        }
    }

    void run_round(const Round& round) {
        std::vector<Piece> received, reduced, sent;
        std::size_t landing_bytes = 0;
        for (const Message& message : round)
            if (message.kind == Message::Kind::receive_and_reduce)
                landing_bytes += bytes_of(message.range);
        std::byte* landing = room(workspace_.landing, landing_bytes);
        for (const Message& message : round) {
            if (message.kind == Message::Kind::send) continue;
            const bool reduces = message.kind == Message::Kind::receive_and_reduce;
            for_pieces(message.range, [&](const Range& range) {
                std::byte* target = reduces ? landing : tensor_ + range.begin * width_;
                Request request = group_.start({Op::receive, operation_.type, Reduction::none,
                                                nullptr, target, 0, range.elements, message.peer});
                (reduces ? reduced : received).push_back({range, target, std::move(request)});
                if (reduces) landing += bytes_of(range);
            });
        }
        bool sends_what_it_reduces = false;
        for (const Message& message : round) {
            if (message.kind != Message::Kind::send) continue;
            sent_[static_cast<std::size_t>(shape_.between(group_.rank(), message.peer))] +=
                message.range.elements;
            for (const Piece& piece : reduced)
                sends_what_it_reduces |= overlap(piece.range, message.range);
            for_pieces(message.range, [&](const Range& range) {
                sent.push_back({range, nullptr,
                                group_.start({Op::send, operation_.type, Reduction::none,
                                              source_ + range.begin * width_, nullptr,
                                              range.elements, 0, message.peer})});
            });
        }
        if (sends_what_it_reduces)
            for (Piece& piece : sent) piece.request.wait();
        for (Piece& piece : reduced) {
            piece.request.wait();
            std::byte* there = tensor_ + piece.range.begin * width_;
            const std::byte* const inputs[] = {there, piece.landing};
            std::byte* const outputs[] = {there};
            reduce_elements(operation_.type, pairwise_reduction(), inputs, outputs,
                            piece.range.elements);
        }
        for (Piece& piece : received) piece.request.wait();
        for (Piece& piece : sent) piece.request.wait();
    }

    void end() {
        const bool scatters = operation_.op == Op::reduce_scatter;
        if (scatters) copy_bytes(operation_.output, tensor_ + own_.begin * width_, bytes_of(own_));
        if (operation_.reduction == Reduction::mean)
            divide_elements(operation_.type, operation_.output, operation_.out_elements,
                            shape_.ranks);
    }

    static bool overlap(const Range& a, const Range& b) {
        return a.begin < b.begin + b.elements && b.begin < a.begin + a.elements;
    }

    template <typename Use>
    void for_pieces(const Range& range, const Use& use) const {
        const std::size_t most = kPieceBytes / width_;
        for (std::size_t done = 0; done < range.elements; done += most)
            use(Range{range.begin + done, std::min(most, range.elements - done)});
    }

    // The division of a mean comes once, at the end.
    Reduction pairwise_reduction() const {
        return operation_.reduction == Reduction::mean ? Reduction::sum : operation_.reduction;
    }

    Communicator& group_;
    const Operation& operation_;
    const Shape& shape_;
    Workspace& workspace_;
    LinkElements& sent_;
    std::size_t width_;
    Range own_;
    std::byte* tensor_ = nullptr;
    const std::byte* source_ = nullptr;
};

}  // namespace

void carry_out(Communicator& group, const Operation& operation, const Algorithm& algorithm,
               int ranks_per_node, Workspace& workspace, LinkElements& sent) {
    check(operation, group.rank(), group.size());
    const Shape shape = shape_of(operation, group.size(), ranks_per_node);
    Conductor(group, operation, shape, workspace, sent).run(algorithm);
}

}  // namespace zeroproof::collectives
