#include "memory/ledger.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

namespace zeroproof::memory {
namespace {

TEST(Ledger, CountsLiveAndPeakBytesOfEachCategoryAndOfAll) {
    Ledger ledger;
    ledger.add(Category::parameter, 100);
    ledger.add(Category::gradient, 50);
    ledger.remove(Category::parameter, 100);
    ledger.add(Category::gradient, 20);

    EXPECT_EQ(ledger.live_bytes(), 70u);
    EXPECT_EQ(ledger.live_bytes(Category::parameter), 0u);
    EXPECT_EQ(ledger.live_bytes(Category::gradient), 70u);
    EXPECT_EQ(ledger.peak_bytes(), 150u);
    EXPECT_EQ(ledger.peak_bytes(Category::parameter), 100u);
    EXPECT_EQ(ledger.peak_bytes(Category::gradient), 70u);
    EXPECT_EQ(ledger.peak_bytes(Category::variance), 0u);
    BytesByCategory expected{};
    expected[static_cast<std::size_t>(Category::gradient)] = 70;
    EXPECT_EQ(ledger.live_bytes_by_category(), expected);
}

TEST(Ledger, APhaseHasAPeakOfItsOwnFromWhatIsLiveWhenItBegins) {
    Ledger ledger;
    EXPECT_EQ(ledger.phase(), Phase::initialise);
    ledger.add(Category::parameter, 10);
    ledger.add(Category::buffer, 90);
    ledger.remove(Category::buffer, 90);
    ledger.enter(Phase::forward);
    EXPECT_EQ(ledger.peak_bytes(Phase::forward), 10u);
    ledger.add(Category::activation, 30);
    ledger.enter(Phase::backward);
    ledger.remove(Category::activation, 30);
    // Entered again, a phase keeps its earlier peak.
    ledger.enter(Phase::forward);
    ledger.add(Category::activation, 5);

    EXPECT_EQ(ledger.phase(), Phase::forward);
    EXPECT_EQ(ledger.peak_bytes(Phase::initialise), 100u);
    EXPECT_EQ(ledger.peak_bytes(Phase::forward), 40u);
    EXPECT_EQ(ledger.peak_bytes(Phase::backward), 40u);
    EXPECT_EQ(ledger.peak_bytes(Phase::step), 0u);
    EXPECT_EQ(ledger.peak_bytes(), 100u);
}

TEST(Ledger, ReturningMoreThanWasTakenIsAnErrorAndChangesNothing) {
    Ledger ledger;
    ledger.add(Category::master, 8);
    ledger.add(Category::momentum, 8);
    try {
        ledger.remove(Category::master, 9);
        FAIL() << "accepted";
    } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(), "9 bytes of category master returned, 8 are live");
    }
    EXPECT_EQ(ledger.live_bytes(), 16u);
    EXPECT_EQ(ledger.live_bytes(Category::master), 8u);
}

TEST(Ledger, EveryCategoryAndPhaseHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < kCategories; ++i) names.insert(name_of(static_cast<Category>(i)));
    EXPECT_EQ(names.size(), kCategories);
    EXPECT_EQ(name_of(Category::buffer), "buffer");
    names.clear();
    for (std::size_t i = 0; i < kPhases; ++i) names.insert(name_of(static_cast<Phase>(i)));
    EXPECT_EQ(names.size(), kPhases);
    EXPECT_EQ(name_of(Phase::read), "read");
    EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace zeroproof::memory
