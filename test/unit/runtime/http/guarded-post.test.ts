/** Posts to URLs that strangers chose: where they may go, and what an answer may do. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { spawn } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout } from "node:timers/promises";
import { errorCode as codeOf } from "../../../../chain/errors.js";
import {
  guardedPost,
  parseTarget,
  type ResolveHost,
} from "../../../../runtime/http/outgoing/guarded-post.js";
import {
  isLoopbackAddress,
  isPublicAddress,
} from "../../../../runtime/http/outgoing/public-address.js";
import { firstWords } from "../../../helpers/processes/endings.js";

describe("a URL", () => {
  it("is as long as it is when it is written out", () => {
    const rules = { allowLoopback: false };
    const url = (path: string) => `https://example.com/${path}`;
    expect(parseTarget(url("x".repeat(2_028)), rules).href).toHaveLength(2_048);
    for (const path of ["x".repeat(2_029), "\u00fc".repeat(400)]) {
      expect(() => parseTarget(url(path), rules)).toThrow(
        expect.objectContaining({ code: "INVALID_TARGET" }),
      );
    }
  });
});

describe("the host of a URL", () => {
  it.each(["https://...", "https://./", "https://.example.com/", "https://a..example.com/"])(
    "has no empty part, as that of %s",
    (text) => {
      expect(() => parseTarget(text, { allowLoopback: true })).toThrow(
        expect.objectContaining({ code: "INVALID_TARGET" }),
      );
    },
  );

  it("may end with the dot of the root", () => {
    const url = parseTarget("https://example.com./", { allowLoopback: false });
    expect(url.hostname).toBe("example.com.");
  });
});

describe("an address", () => {
  it.each([
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "localhost",
    "",
  ])("%s is not one of the public internet", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  it.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "172.15.255.255", "100.128.0.1", "2606:4700::1111"])(
    "%s is",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it("is loopback only as itself", () => {
    expect(["127.0.0.1", "127.9.9.9", "::1"].map(isLoopbackAddress)).toEqual([true, true, true]);
    for (const other of ["::ffff:127.0.0.1", "0.0.0.0", "::", "128.0.0.1", "localhost"]) {
      expect([other, isLoopbackAddress(other)]).toEqual([other, false]);
    }
  });
});

describe("a URL", () => {
  const wrong = [
    "http://hooks.example.com/",
    "ftp://hooks.example.com/",
    "file:///etc/passwd",
    "https://user:secret@hooks.example.com/",
    "https://hooks.example.com/#part",
    "https://hooks.example.com:22/",
    "https://hooks.example.com:80/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://169.254.169.254/latest/meta-data/",
    "https://0/",
    "hooks.example.com",
    `https://hooks.example.com/${"x".repeat(2_048)}`,
  ];
  it.each(wrong)("like %s is refused", (text) => {
    expect(() => parseTarget(text, { allowLoopback: false })).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/^(INVALID|FORBIDDEN)_TARGET$/) }),
    );
  });

  it("to loopback is taken where that is allowed, and to nowhere else in clear text", () => {
    const local = { allowLoopback: true };
    expect(parseTarget("http://127.0.0.1:9000/x", local).href).toBe("http://127.0.0.1:9000/x");
    expect(parseTarget("http://localhost:80/", local).host).toBe("localhost");
    expect(() => parseTarget("http://127.0.0.1:0/", local)).toThrow(/port 0/);
    expect(() => parseTarget("http://192.168.0.1/", local)).toThrow(/loopback/);
    expect(() => parseTarget("https://169.254.169.254/", local)).toThrow(/169\.254/);
    expect(parseTarget("https://hooks.example.com:8443/", local).port).toBe("8443");
  });
});

/** A host whose packets are lost: it listens, and connections behind the second one are never made. */
async function hungHost() {
  const program = `
    const server = require("node:net").createServer();
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      require("node:fs").writeSync(1, String(server.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ["--eval", program], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const port = Number(await firstWords(child));
  const fillers = Array.from({ length: 2 }, () => connect(port, "127.0.0.1"));
  await Promise.all(
    fillers.map((filler) => new Promise<void>((resolve) => filler.once("connect", resolve))),
  );
  return { child, port, fillers };
}

describe("a post", () => {
  let server: Server;
  let port: number;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let paths: string[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      paths.push(request.url ?? "");
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const { signal } = new AbortController();
  const post = (
    url: string,
    more: { resolve?: ResolveHost; allowLoopback?: boolean; timeoutMs?: number } = {},
  ) =>
    guardedPost({
      url: new URL(url),
      headers: { "content-type": "application/json" },
      body: "{}",
      timeoutMs: 30_000,
      allowLoopback: true,
      signal,
      ...more,
    });

  it("goes to an address that was looked at, and resolves a name once", async () => {
    answer = (_request, response) => response.end("fine");
    let looks = 0;
    // The second look-up of a rebinding name would lead elsewhere.
    const rebinding: ResolveHost = async () => (looks++ === 0 ? ["127.0.0.1"] : ["192.0.2.1"]);
    const url = `http://localhost:${port}/once`;
    expect(await post(url, { resolve: rebinding })).toMatchObject({ status: 200, excerpt: "fine" });
    expect(looks).toBe(1);
    await expect(post(url, { resolve: rebinding })).rejects.toMatchObject({
      code: "FORBIDDEN_TARGET",
    });
  });

  it("is refused when one of a name's addresses is not public", async () => {
    paths = [];
    const url = `https://hooks.example.com:${port}/`;
    for (const address of ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"]) {
      const resolve: ResolveHost = async () => ["8.8.8.8", address];
      await expect(post(url, { resolve, allowLoopback: false })).rejects.toMatchObject({
        code: "FORBIDDEN_TARGET",
        details: { address },
      });
    }
    const translated: ResolveHost = async () => ["8.8.8.8", "64:ff9b::808:808"];
    const [told, other] = await Promise.all(
      [translated, async () => ["10.0.0.1"]].map((resolve) =>
        post(url, { resolve, allowLoopback: false }).catch((error: unknown) => String(error)),
      ),
    );
    expect(told).toContain("64:ff9b::808:808, which is not one of the public internet: NAT64");
    expect(other).toMatch(/10\.0\.0\.1, which is not one of the public internet$/);
    const nowhere = post(url, { resolve: async () => [] });
    await expect(nowhere).rejects.toMatchObject({ code: "TARGET_UNREACHABLE" });
    expect(paths).toEqual([]);
  });

  it("does not go where an answer points", async () => {
    paths = [];
    answer = (_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${port}/elsewhere` }).end();
    };
    expect((await post(`http://127.0.0.1:${port}/first`)).status).toBe(307);
    expect(paths).toEqual(["/first"]);
  });

  it("goes to the port of its protocol where it names none", async () => {
    // Nobody listens there: the fault says where it was looked for.
    for (const [protocol, at] of [
      ["http", 80],
      ["https", 443],
    ] as const) {
      const refused = post(`${protocol}://127.77.0.1/`);
      await expect(refused).rejects.toMatchObject({ cause: { address: "127.77.0.1", port: at } });
    }
  });

  it("reads no more of an answer than a person wants to see", async () => {
    let sentBytes = 0;
    answer = (_request, response) => {
      // Never ends by itself.
      const more = () => {
        if (response.destroyed) return;
        sentBytes += 65_536;
        // In a turn of its own: some versions of Node say at once that it is written, without end.
        response.write("x".repeat(65_536), () => setImmediate(more));
      };
      more();
    };
    const { status, excerpt } = await post(`http://127.0.0.1:${port}/`);
    expect([status, excerpt]).toEqual([200, "x".repeat(512)]);
    // What sockets hold by themselves is far below; who read on would see a hundred times as much.
    expect(sentBytes).toBeLessThan(32 * 1_024 * 1_024);
  });

  it("gives up a receiver that does not answer", async () => {
    answer = () => undefined;
    const hanging = post(`http://127.0.0.1:${port}/`, { timeoutMs: 50 });
    await expect(hanging).rejects.toMatchObject({ code: "TARGET_TIMEOUT", retriable: true });
    const unresolved = post(`http://localhost:${port}/`, {
      timeoutMs: 50,
      resolve: () => new Promise(() => undefined),
    });
    await expect(unresolved).rejects.toMatchObject({ code: "TARGET_TIMEOUT" });
    answer = (request) => void request.socket.destroy();
    await expect(post(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
      code: "TARGET_UNREACHABLE",
    });
  });

  it("goes to the next address of a name where one takes no connection, and answers nobody", async () => {
    const { child, port: hungPort, fillers } = await hungHost();
    const healthy = createServer((_request, response) => response.end("healthy"));
    try {
      await new Promise<void>((resolve) => healthy.listen(hungPort, "127.0.0.2", resolve));
      const resolve: ResolveHost = async () => ["127.0.0.1", "127.0.0.2"];
      const url = `http://localhost:${hungPort}/`;
      expect(await post(url, { resolve, timeoutMs: 6_000 })).toMatchObject({ excerpt: "healthy" });
      // Where there is but one, all the time is its.
      const only = post(url, { resolve: async () => ["127.0.0.1"], timeoutMs: 100 });
      await expect(only).rejects.toMatchObject({ code: "TARGET_TIMEOUT" });
    } finally {
      for (const filler of fillers) filler.destroy();
      child.kill("SIGKILL");
      healthy.closeAllConnections();
      healthy.close();
    }
  });

  it("ends with a receiver that would speak another protocol from here on", async () => {
    answer = ({ socket }) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    };
    const switching = post(`http://127.0.0.1:${port}/`, { timeoutMs: 60_000 }).catch(codeOf);
    // It would not end at its time either.
    expect(await Promise.race([switching, setTimeout(120_000, "hangs", { ref: false })])).toBe(
      "TARGET_UNREACHABLE",
    );
  });
});
