# Builds all commands of the repository into one small image:
#   docker build -t culm .
#   docker run --rm -p 4222:4222 -v culm:/data culm --listen 0.0.0.0:4222
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN mkdir /out && for dir in cmd/*/; do \
      CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X culm/internal/version.release=${VERSION}" -o "/out/$(basename "$dir")" "./$dir" || exit 1; \
    done

FROM alpine:3.22
RUN addgroup -S culm && adduser -S -G culm culm && mkdir /data && chown culm:culm /data
COPY --from=build /out/ /usr/local/bin/
COPY --from=build /src/examples/ /usr/local/share/culm/examples/
USER culm
WORKDIR /
VOLUME /data
ENV CULM_DATA=/data
# The open listener trusts whoever reaches it; publish the port with care.
EXPOSE 4222 8280
STOPSIGNAL SIGTERM
ENTRYPOINT ["engine"]
