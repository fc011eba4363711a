/** Who meets whom in docker-compose.yml: networks apart, published ports, addresses. */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { compose, hostIn, root, serviceNamed, services } from "./compose-file.js";

describe("docker-compose.yml", () => {
  it("goes out by the network that the page names: the engine takes the first name that has a way", () => {
    const page = readFileSync(join(root, "docs/operations.md"), "utf8");
    for (const [name, network] of [
      ["node", "chain-public"],
      ["deposit-watcher", "deposits"],
      ["withdrawal-worker", "signer"],
    ] as const) {
      const open = serviceNamed(name).networks.filter(
        (each) => z.object({ internal: z.literal(true) }).safeParse(compose.networks[each]).error,
      );
      expect([name, open.toSorted()[0]]).toEqual([name, network]);
      expect(page).toContain(`from \`${network}\``);
    }
  });

  it("keeps signer, public servers and Redis in networks apart", () => {
    const shared = (left: string, right: string) =>
      serviceNamed(left).networks.filter((one) => serviceNamed(right).networks.includes(one));
    for (const other of [
      "sidecar-online",
      "sidecar-offline",
      "deposit-watcher",
      "indexer",
      "explorer",
      "redis",
    ]) {
      const expected = other === "redis" ? ["queue"] : [];
      expect([other, shared("withdrawal-worker", other)]).toEqual([other, expected]);
    }
    expect(shared("withdrawal-worker", "node")).toEqual(["signer"]);
    const withRedis = services.filter(([, { networks }]) => networks.includes("queue"));
    expect(withRedis.map(([name]) => name).toSorted()).toEqual(["redis", "withdrawal-worker"]);
    for (const data of [
      "operator-data",
      "watcher-data",
      "worker-data",
      "treasury-data",
      "indexer-data",
      "queue",
    ]) {
      expect(compose.networks[data]).toEqual({ internal: true });
    }
    for (const name of ["node", "sidecar-online", "sidecar-offline", "explorer", "console"]) {
      expect([name, shared(name, "postgres")]).toEqual([name, []]);
    }
    // The console meets each API apart: nobody else comes to the signer through it.
    expect(shared("console", "withdrawal-worker")).toEqual(["desk-withdrawals"]);
    expect(shared("console", "deposit-watcher")).toEqual(["desk-deposits"]);
  });

  it("publishes on 127.0.0.1 only, and the database and Redis not at all", () => {
    for (const [name, { ports }] of services) {
      for (const port of ports) expect(`${name} ${port}`).toMatch(/ 127\.0\.0\.1:(\d+):\1$/);
    }
    expect(serviceNamed("postgres").ports).toEqual([]);
    expect(serviceNamed("redis").ports).toEqual([]);
  });

  it("makes every process listen on all interfaces of its container, on the published ports", () => {
    for (const [name, { environment, ports }] of services) {
      const listened = Object.values(environment).flatMap((value) => {
        const match = /^(?:tcp:\/\/)?0\.0\.0\.0:(\d+)$/.exec(value);
        return match?.[1] === undefined ? [] : [match[1]];
      });
      const published = ports.map((port) => port.split(":").at(-1) ?? "");
      expect({ name, ports: listened.toSorted() }).toEqual({ name, ports: published.toSorted() });
    }
  });

  it("names existing services, on a common network, in every address", () => {
    for (const [name, { environment, networks }] of services) {
      for (const value of Object.values(environment)) {
        const host = hostIn(value);
        if (host === undefined) continue;
        const target = serviceNamed(host);
        const common = target.networks.filter((network) => networks.includes(network));
        expect(`${name} -> ${value}: ${common.length > 0}`).toBe(`${name} -> ${value}: true`);
      }
    }
  });

  it("keeps the offline API alone on a network of its own", () => {
    expect(serviceNamed("sidecar-offline").networks).toEqual(["offline"]);
    // The operator asks it whether it is ready, and listens on nothing.
    const inside = services.filter(([, { networks }]) => networks.includes("offline"));
    expect(inside.map(([name]) => name)).toEqual(["sidecar-offline", "operator"]);
    const offline = JSON.stringify(compose.networks["offline"]);
    expect(offline).toContain('"com.docker.network.bridge.enable_ip_masquerade":"false"');
  });
});
