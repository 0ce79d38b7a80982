# The same with a trained snake in it, for places without volumes:
#   docker buildx build --platform linux/amd64 --provenance=false --output type=docker -f serve/deploy/with-bundle.Dockerfile -t my-snake runs/battlesnake-ppo-…
ARG BASE=procsnake:latest
FROM ${BASE}
COPY bundle /bundle
RUN procsnake warm-up /bundle
ENV PROCSNAKE_AGENT=/bundle
