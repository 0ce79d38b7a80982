#!/bin/bash
# Stand-in of the starter kit's: what it exports, greps and starts, in words of our own.
set -e

export EXPERIMENT_DEFAULT="experiments/procgen-starter-example.yaml"
export EXPERIMENT=${EXPERIMENT:-$EXPERIMENT_DEFAULT}

if [[ -z $AICROWD_IS_GRADING ]]; then
  export OUTPUTS_DIR=./outputs
  export RAY_MEMORY_LIMIT=1500000000
  export RAY_CPUS=${RAY_CPUS:-2}
  export RAY_STORE_MEMORY=1000000000
  mkdir -p ${OUTPUTS_DIR}
fi

if [[ " $@ " =~ " --train " ]]; then
  python train.py -f ${EXPERIMENT} --ray-memory ${RAY_MEMORY_LIMIT:-1500000000} --ray-num-cpus ${RAY_CPUS:-2} \
    --ray-object-store-memory ${RAY_STORE_MEMORY:-1000000000}
fi

if [[ " $@ " =~ " --rollout " ]]; then
  RUN=$(grep '  run:' $EXPERIMENT | awk '{print $2}')
  ENVIRONMENT=$(grep '  env:' $EXPERIMENT | awk '{print $2}')
  if [ -z $CHECKPOINT ]; then
    NAME=$(grep -Ev '^ |^#' $EXPERIMENT | head -n1 | awk -F':' '{print $1}')
    CHECKPOINT=$(find $HOME/ray_results/$NAME -name '*.tune_metadata' | sort | tail -n 1 | sed 's/\.tune_metadata$//')
  fi
  python ./rollout.py $CHECKPOINT --episodes ${EPISODES:-5} --run $RUN --env $ENVIRONMENT
fi
