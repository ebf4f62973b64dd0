#include "reference/zero_dp/stage3.h"

#include "reference/layouts.h"

namespace zeroproof::reference {

Stage3::Stage3(const Setup& setup)
    : LayoutHolder(flats_by_use(setup.model, true, setup.ranks(), setup.options.bucket_elements)),
      Stage(setup, layout(), setup.rank()),
      weights_(setup, layout()),
      gradients_(setup, layout()) {}

}  // namespace zeroproof::reference
