# One image for every process of the kit. By itself it is what Mesh asks for: node and sidecar with
# one data volume, `docker run -e MODE=ONLINE -e NETWORK=testnet -e PORT=8080 -p 8080:8080 -v
# causeway:/data IMAGE` (MODE=OFFLINE: the offline API alone, no volume needed, no network either).
# docker-compose.yml says which single process a container runs instead.
# Another one: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:... (docs/operations.md)
ARG NODE_IMAGE=node:24-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df
FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY test/foundry/package.json ./test/foundry/
RUN npm ci --no-audit --no-fund
COPY . .
# The clone's files have the modes of whoever made it; those of the image are read by another user.
RUN node bin/build.mjs && npm prune --omit=dev --omit=optional --no-audit --no-fund \
  && chmod -R a+rX dist package.json

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
# 999 is also the user of the PostgreSQL and Redis images, so that all of them can own their volumes
# without any container ever running as root. The folders exist here, because a new volume takes
# over owner and mode of the folder that it is mounted on.
RUN groupadd --system --gid 999 causeway \
  && useradd --system --uid 999 --gid 999 --home-dir /home/causeway --no-create-home causeway \
  && install --directory --owner=999 --group=999 --mode=700 \
    /data /home/causeway /homes /homes/operator /homes/node /homes/sidecar /homes/indexer /homes/explorer \
    /homes/console /homes/deposit-watcher /homes/withdrawal-worker /homes/treasury /homes/migrate /homes/desk \
    /homes/postgres /homes/redis
WORKDIR /app
COPY --from=build /app/package.json ./package.json
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
USER 999:999
VOLUME ["/data"]
ENTRYPOINT ["node"]
CMD ["dist/cli/mesh-main.js", "--home", "/data"]
