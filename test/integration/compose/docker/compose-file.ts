/** docker-compose.yml as it is parsed, and what tests ask of its services. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";

/** The clone. */
export const root = new URL("../../../../", import.meta.url).pathname;

const condition = z.object({ condition: z.string() });
const service = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  user: z.string(),
  read_only: z.literal(true),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  restart: z.string(),
  init: z.boolean().optional(),
  network_mode: z.string().optional(),
  networks: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  depends_on: z.record(z.string(), condition).default({}),
  profiles: z.array(z.string()).default([]),
  mem_limit: z.string(),
  memswap_limit: z.string(),
  cpus: z.number(),
  pids_limit: z.number(),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});
const composeFile = z.object({
  services: z.record(z.string(), service),
  networks: z.record(z.string(), z.unknown()),
  volumes: z.record(z.string(), z.unknown()),
});

const text = readFileSync(join(root, "docker-compose.yml"), "utf8");
/** All of it. */
export const compose = composeFile.parse(parse(text, { merge: true }));
/** Services by name. */
export const services = Object.entries(compose.services);

/** The page for operators. */
export const operations = readFileSync(join(root, "docs/operations.md"), "utf8");

/** One of them. */
export function serviceNamed(name: string): z.output<typeof service> {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  return found;
}

/** Services that a volume is mounted into. */
export function holders(volume: string): string[] {
  return services
    .filter(([, { volumes }]) => volumes.some((mount) => mount.startsWith(`${volume}:`)))
    .map(([name]) => name);
}

/** Host of a URL or of a listen address, where it is another service's. */
export function hostIn(value: string): string | undefined {
  const host = /^(?:[a-z]+:\/\/)?(?:[a-z_]+@)?([a-z][a-z-]*):\d+/.exec(value)?.[1];
  return host === undefined || !Object.hasOwn(compose.services, host) ? undefined : host;
}
