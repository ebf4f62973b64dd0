#include "reference/zero_dp/stage1.h"

#include "reference/layouts.h"

namespace zeroproof::reference {

Stage1::Stage1(const Setup& setup)
    : ReplicatedStage(setup,
                      one_flat(setup.model, true, setup.ranks(), setup.options.bucket_elements),
                      setup.rank()) {}

collectives::Request Stage1::start_reduction(memory::Buffer& gradients, std::size_t bucket) {
    const Range whole = flat().bucket(bucket);
    const Range mine = flat().owned(bucket, setup_.rank());
    return setup_.channels.gradients.reduce_scatter(gradients.at(whole.begin),
                                                    gradients.at(mine.begin), mine.size(),
                                                    setup_.type(), collectives::Reduction::mean);
}

}  // namespace zeroproof::reference
