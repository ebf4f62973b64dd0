#include "reference/zero_dp/stage3.h"

#include "reference/layouts.h"

namespace zeroproof::reference {

Stage3::Stage3(const Setup& setup)
    : WithFlats(flats_by_use(setup.model, true, setup.ranks(), setup.options.bucket_elements)),
      Stage(setup, flats(), setup.rank()),
      weights_(setup, flats()),
      gradients_(setup, flats()) {}

}  // namespace zeroproof::reference
