// The layout that a stage is made from.
#pragma once

#include <utility>

namespace zeroproof::reference {

// A stage hands its layout to its base class `Stage` and to its members, and all of them keep
// references to it. C++ makes base classes before members, so a layout that is a member would not
// be there yet when `Stage` is made. It therefore lives in a base class that is named before
// `Stage`: made first, and destroyed last.
template <typename Layout>
class LayoutHolder {
  protected:
    explicit LayoutHolder(Layout layout) : layout_(std::move(layout)) {}
    const Layout& layout() const { return layout_; }

  private:
    Layout layout_;
};

}  // namespace zeroproof::reference
