# MCP over HTTP:   docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_BASE_URL=https://… ad-library-mcp
# Demo data:       docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_DEMO=true ad-library-mcp
# MCP over stdio:  docker run --rm -i -e AD_LIBRARY_API_KEY -e AD_LIBRARY_BASE_URL ad-library-mcp stdio
# docs/operations.md has more, such as a local library and files that outlive the container.

# The digest is what the tag meant on 2026-08-22. "docker buildx imagetools inspect node:24-alpine" shows the present one.
FROM node:24-alpine@sha256:d32cdf619f63fe0471182d08996dd516c6275bb5fd31ae06e55a570bd9e1ad43 AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: nothing that is installed runs, and the build follows on its own.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY scripts scripts
COPY docs/skill docs/skill
RUN npm run build

FROM node:24-alpine@sha256:d32cdf619f63fe0471182d08996dd516c6275bb5fd31ae06e55a570bd9e1ad43
# labels: npm run docs writes them from package.json
LABEL org.opencontainers.image.title="ad-library-mcp" \
      org.opencontainers.image.description="MCP server for an ad-intelligence service: search ads and advertiser pages, read collections, and see what every call costs" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
# /labels
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/dist dist
# Nobody could open a file in the container's temporary folder, so its place is one that cannot be written.
# Behind a name of its own the names it answers to must be set anew; these are those of a port published to this machine.
ENV NODE_ENV=production \
    AD_LIBRARY_HOST=0.0.0.0 \
    AD_LIBRARY_PORT=3000 \
    AD_LIBRARY_ALLOWED_HOSTS=localhost,127.0.0.1 \
    TMPDIR=/app
# What outlives the container: a dataset and exports (AD_LIBRARY_FILES=/data/files), and the file of a local library.
RUN mkdir /data && chown node:node /data
VOLUME /data
WORKDIR /data
USER node
EXPOSE 3000
# A local library has no /healthz, but answers. Over stdio nothing listens: docker run --no-healthcheck.
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.AD_LIBRARY_PORT}/healthz`).then(({ status }) => process.exit(status < 500 ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["http"]
