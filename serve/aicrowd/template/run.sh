#!/bin/bash
# What AIcrowd calls, and you: --train, --rollout, or both.
#   EXPERIMENT   YAML file of the experiment          CHECKPOINT   checkpoint-N to roll out (default: the newest)
#   EPISODES     to roll out (default: 5)             OUTPUTS_DIR  where the grader wants what you leave behind
set -e

export EXPERIMENT_DEFAULT="@EXPERIMENT@"
export EXPERIMENT=${EXPERIMENT:-$EXPERIMENT_DEFAULT}

if [[ -z $AICROWD_IS_GRADING ]]; then
  # On your machine; the grader sets these itself. Ray counts the cores that it is told, not those that are there.
  export OUTPUTS_DIR=${OUTPUTS_DIR:-./outputs}
  export RAY_MEMORY_LIMIT=${RAY_MEMORY_LIMIT:-1500000000}
  export RAY_CPUS=${RAY_CPUS:-8}
  export RAY_STORE_MEMORY=${RAY_STORE_MEMORY:-1000000000}
  mkdir -p "${OUTPUTS_DIR}"
fi

newest_checkpoint() {
  local name
  name=$(grep -Ev '^ |^#|^$|^---' "$EXPERIMENT" | head -n 1 | cut -d: -f1)
  find "$HOME/ray_results/$name" -name '*.tune_metadata' -printf '%T@ %p\n' 2>/dev/null |
    sort -n | tail -n 1 | cut -d' ' -f2- | sed 's/\.tune_metadata$//'
}

if [[ " $* " =~ " --train " ]]; then
  python train.py -f "$EXPERIMENT" --ray-memory "${RAY_MEMORY_LIMIT:-1500000000}" --ray-num-cpus "${RAY_CPUS:-2}" \
    --ray-object-store-memory "${RAY_STORE_MEMORY:-1000000000}"
fi

if [[ " $* " =~ " --rollout " ]]; then
  RUN=$(grep '  run:' "$EXPERIMENT" | awk '{print $2}')
  ENVIRONMENT=$(grep '  env:' "$EXPERIMENT" | awk '{print $2}')
  CHECKPOINT=${CHECKPOINT:-$(newest_checkpoint)}
  if [[ -z $CHECKPOINT ]]; then
    echo "there is no checkpoint in ~/ray_results; train first: ./run.sh --train" >&2
    exit 1
  fi
  echo "rolling out $CHECKPOINT"
  python utils/rollout_on_ray_086.py "$CHECKPOINT" --episodes "${EPISODES:-5}" --run "$RUN" --env "$ENVIRONMENT"
fi

# No exit at the end: the kit's validator sources this file to read EXPERIMENT.
if [[ ! " $* " =~ " --train " && ! " $* " =~ " --rollout " ]]; then
  echo "usage: [EXPERIMENT=…] [CHECKPOINT=…] [EPISODES=…] ./run.sh --train | --rollout"
fi
