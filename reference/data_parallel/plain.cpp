#include "reference/data_parallel/plain.h"

#include "reference/layouts.h"

namespace zeroproof::reference {

// The layout has one owner, and every rank is that owner: owner 0 of 1.
PlainDataParallel::PlainDataParallel(const Setup& setup)
    : ReplicatedStage(setup, one_flat(setup.model, true, 1, setup.options.bucket_elements), 0) {}

collectives::Request PlainDataParallel::start_reduction(memory::Buffer& gradients,
                                                        std::size_t bucket) {
    const Range whole = flat().bucket(bucket);
    return setup_.channels.gradients.all_reduce(gradients.at(whole.begin),
                                                gradients.at(whole.begin), whole.size(),
                                                setup_.type(), collectives::Reduction::mean);
}

}  // namespace zeroproof::reference
