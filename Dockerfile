# The image of skep, from its source: docker build -t skep .
# `make image` builds the same image without a container engine, and a faster one after `make profile`.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The program behaves according to its name.
RUN cargo rustc --profile image --locked -p skep --bin skep -- -C link-arg=-Wl,-z,pack-relative-relocs \
    && mkdir /image && cp target/image/skep /image/ \
    && ln -s skep /image/thv-proxyrunner && ln -s skep /image/vmcp

# libc, libgcc and certificates, and no shell.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/skep"]
