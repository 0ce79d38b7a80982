# Any of these images for AWS Lambda: the Lambda Web Adapter turns invocations into HTTP requests to our port. Elsewhere it does nothing.
#   docker buildx build --platform linux/amd64 --provenance=false --output type=docker -f serve/deploy/lambda.Dockerfile --build-arg BASE=my-snake -t my-snake-lambda .
ARG BASE=procsnake:latest
ARG ADAPTER=public.ecr.aws/awsguru/aws-lambda-adapter:0.9.1
FROM ${ADAPTER} AS adapter

FROM ${BASE}
COPY --from=adapter /lambda-adapter /opt/extensions/lambda-adapter
ENV AWS_LWA_READINESS_CHECK_PATH=/health PORT=8000
CMD ["start", "--no-games"]
