# MCP over HTTP:   docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_BASE_URL=https://… ad-library-mcp
# Demo data:       docker run --rm -p 127.0.0.1:3000:3000 -e AD_LIBRARY_DEMO=true ad-library-mcp
# MCP over stdio:  docker run --rm -i -e AD_LIBRARY_API_KEY -e AD_LIBRARY_BASE_URL --entrypoint /app/dist/main.js ad-library-mcp

FROM node:24-alpine AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: nothing that is installed runs, and the build follows on its own.
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY scripts scripts
RUN npm run build

FROM node:24-alpine
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/dist dist
# Behind a name of its own the names it answers to must be set anew; these are those of a port published to this machine.
ENV NODE_ENV=production \
    AD_LIBRARY_HOST=0.0.0.0 \
    AD_LIBRARY_PORT=3000 \
    AD_LIBRARY_ALLOWED_HOSTS=localhost,127.0.0.1
USER node
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.AD_LIBRARY_PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["http"]
