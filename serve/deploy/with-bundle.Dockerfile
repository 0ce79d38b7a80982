# The same with a trained snake in it, for places without volumes:
#   docker build -f serve/deploy/with-bundle.Dockerfile -t my-snake runs/battlesnake-ppo-…
ARG BASE=procsnake:latest
FROM ${BASE}
COPY bundle /bundle
RUN procsnake warm-up /bundle
ENV PROCSNAKE_AGENT=/bundle
