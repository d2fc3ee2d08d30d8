# MCP over HTTP:   docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_BASE_URL=https://… ad-library-mcp
# Demo data:       docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_DEMO=true ad-library-mcp
# MCP over stdio:  docker run --rm -i -e AD_LIBRARY_API_KEY -e AD_LIBRARY_BASE_URL ad-library-mcp stdio
# docs/operations.md has more, such as a local library and files that outlive the container.

# The digest is what the tag meant on 2026-08-22. "docker buildx imagetools inspect node:24-alpine" shows the present one.
# Another image can take its place with --build-arg NODE_IMAGE=…: it needs Node 20.19 or newer, npm, and a user "node".
ARG NODE_IMAGE=node:24-alpine@sha256:d32cdf619f63fe0471182d08996dd516c6275bb5fd31ae06e55a570bd9e1ad43
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Scripts of packages do not run. The build is a step of its own.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY scripts scripts
COPY docs/skill docs/skill
RUN npm run build

FROM ${NODE_IMAGE}
# labels: npm run docs writes them from package.json
LABEL org.opencontainers.image.title="ad-library-mcp" \
      org.opencontainers.image.description="MCP server for an ad-intelligence service: search ads and advertiser pages, read collections, and see what every call costs" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
# /labels
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/dist dist
# Nobody could open an export in the container's temporary folder, so TMPDIR is a folder that the server cannot write.
# AD_LIBRARY_ALLOWED_HOSTS has the names of a port that is published to this machine. Set it to the name that callers use.
ENV NODE_ENV=production \
    AD_LIBRARY_HOST=0.0.0.0 \
    AD_LIBRARY_PORT=3000 \
    AD_LIBRARY_ALLOWED_HOSTS=localhost,127.0.0.1 \
    TMPDIR=/app
# The volume holds what outlives the container: a dataset and exports (AD_LIBRARY_FILES=/data/files), and the file of a
# local library. The user "node" has the id 1000. A folder that is mounted here must belong to that id.
RUN mkdir /data && chown node:node /data
VOLUME /data
WORKDIR /data
USER node
EXPOSE 3000
# A local library has no /healthz, but it answers with a status below 500. Over stdio, nothing listens: use docker run
# --no-healthcheck. The check starts Node, which takes seconds on a busy machine.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.AD_LIBRARY_PORT}/healthz`).then(({ status }) => process.exit(status < 500 ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["http"]
