# The image of skep, from its source: docker build -t skep .
# `make image` makes the same without a container engine, and is what the end-to-end cases run.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# It is what it is called.
RUN cargo build --profile image --locked -p skep && mkdir /image && cp target/image/skep /image/ \
    && ln -s skep /image/thv-proxyrunner && ln -s skep /image/vmcp

# libc, libgcc and certificates, and no shell.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/skep"]
