// A training run on the terminal.
#pragma once

#include <chrono>
#include <string>

#include "harness/train/text_data.h"
#include "harness/train/train_record.h"

namespace zeroproof::harness {

// A line for each model that --model knows.
std::string known_models();

std::string training_header(const TrainPlan& plan, const TextData& data);

// A line of losses now and then, and on a terminal one that says how far it is.
class TrainingProgress {
  public:
    TrainingProgress(const TrainPlan& plan, bool shows) : plan_(plan), shows_(shows) {}
    void step(const StepResult& step);
    void end() const;

  private:
    const TrainPlan& plan_;
    bool shows_;
    double seconds_ = 0;  // of all steps
    std::int64_t steps_ = 0;
};

// Loss, speed, and bytes beside the formula and the prediction.
std::string training_summary(const TrainRecord& record);

// Whether at rest every rank holds to the byte what was predicted, and its peak is within 2 % of
// the prediction.
bool is_as_predicted(const TrainRecord& record);

// For a device that is too small: what this plan takes, and which others would fit.
std::string what_would_fit(const TrainPlan& plan);

}  // namespace zeroproof::harness
