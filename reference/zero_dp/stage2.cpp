#include "reference/zero_dp/stage2.h"

#include "reference/layouts.h"

namespace zeroproof::reference {

Stage2::Stage2(const Setup& setup)
    : LayoutHolder(one_flat(setup.model, true, setup.ranks(), setup.options.bucket_elements)),
      Stage(setup, {&layout(), 1}, setup.rank()),
      weights_(setup, layout()),
      gradients_(setup, {&layout(), 1}) {}

}  // namespace zeroproof::reference
