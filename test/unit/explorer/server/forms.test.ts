/** What forms send: read within bounds, for each and for all, and never from other pages. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { errorCode } from "../../../../chain/errors.js";
import { FormRoom, readForm, sentQuery } from "../../../../explorer/server/form-body.js";
import { isForeignForm } from "../../../../web/server/foreign-form.js";

const MAX_BYTES = 1024 * 1024;

let server: Server;
let url: string;

/** Answers what it read, or the code of the fault. */
beforeAll(async () => {
  server = createServer((incoming, response) => {
    readForm(incoming, MAX_BYTES).then(
      (fields) => response.end(JSON.stringify([...fields])),
      (error: unknown) => {
        response.setHeader("connection", "close");
        response.end(errorCode(error));
      },
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function send(body: BodyInit, type?: string): Promise<string> {
  const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
  return (await fetch(url, { method: "POST", body, headers })).text();
}

const MULTIPART = "multipart/form-data; boundary=x";
const part = (name: string, value: string) =>
  `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

describe("a form", () => {
  it("is read as browsers send it: fields, and files as their texts", async () => {
    const form = new FormData();
    form.set("name", "ä &=");
    form.set("file", new Blob(['{"a":1}\r\n--no boundary']), "input.json");
    form.append("name", "second");
    expect(JSON.parse(await send(form))).toEqual([
      ["name", "ä &="],
      ["file", '{"a":1}\r\n--no boundary'],
    ]);
    const fields = new URLSearchParams({ name: "ä &=", empty: "" });
    expect(JSON.parse(await send(fields))).toEqual([["name", "ä &="]]);
    expect([...sentQuery(new URLSearchParams("b=2&a=1&x=3"), ["a", "b"])]).toEqual([
      ["a", "1"],
      ["b", "2"],
    ]);
  });

  it("is refused where it is none, too large, or of too many parts", async () => {
    const end = "--x--\r\n";
    const cases: readonly (readonly [string, string, string])[] = [
      ["{}", "application/json", "BAD_REQUEST"],
      [part("a", "1"), MULTIPART, "BAD_REQUEST"],
      ["", MULTIPART, "BAD_REQUEST"],
      [`${part("a", "1")}${end}`, "multipart/form-data", "BAD_REQUEST"],
      [`${part("a", "1").repeat(70)}${end}`, MULTIPART, "BAD_REQUEST"],
      [`--x\r\n${"a: b\r\n".repeat(2_000)}\r\n1\r\n${end}`, MULTIPART, "BAD_REQUEST"],
      ["a=b&".repeat(70), "application/x-www-form-urlencoded", "BAD_REQUEST"],
      ["x".repeat(MAX_BYTES + 1), "application/x-www-form-urlencoded", "TOO_LARGE"],
    ];
    for (const [body, type, code] of cases) {
      // The connection may be closed while the rest is still being sent.
      const answer = await send(body, type).catch(() => code);
      expect({ body: body.slice(0, 40), type, answer }).toEqual({
        body: body.slice(0, 40),
        type,
        answer: code,
      });
    }
    expect(JSON.parse(await send(`${part("a", "1")}${end}`, MULTIPART))).toEqual([["a", "1"]]);
  });

  it("is counted by the boundary by which it is read", async () => {
    const type = "multipart/form-data";
    const plain = `${part("a", "1")}--x--\r\n`;
    for (const good of [
      `${type}; boundary="x"`,
      `${type};charset=utf-8; Boundary=x ; q=1`,
      `Multipart/Form-Data ;boundary=x`,
    ]) {
      expect({ good, read: await send(plain, good) }).toEqual({ good, read: '[["a","1"]]' });
    }
    // As Chromium, Firefox and curl name theirs.
    for (const boundary of [
      "----WebKitFormBoundary7MA4YWxkTrZu0gW",
      "----geckoformboundary2f1c8a9b3d4e5f60718293a4b5c6d7e8",
      "---------------------------9051914041544843365972754266",
      "------------------------d74496d66958873e",
    ]) {
      const read = await send(
        plain.replaceAll("--x", `--${boundary}`),
        `${type}; boundary=${boundary}`,
      );
      expect({ boundary, read }).toEqual({ boundary, read: '[["a","1"]]' });
    }
    // A head that is far too long, among parts of another boundary than the one that is found first.
    const long = `${part("a".repeat(50_000), "1")}--x--\r\n`;
    for (const odd of [
      `${type}; xboundary=q; boundary=x`,
      `${type}; a="boundary=q"; boundary=x`,
      `${type}; boundary=x; boundary=q`,
      `${type}; boundary="x\\"`,
      `${type}; boundary*=x`,
    ]) {
      expect({ odd, read: await send(long, odd) }).toEqual({ odd, read: "BAD_REQUEST" });
    }
  });
});

function request(headers: Record<string, string>): IncomingMessage {
  return { headers } as unknown as IncomingMessage;
}

describe("all forms together", () => {
  it("have a bound, by what they say that they send, or by what they might", async () => {
    const room = new FormRoom(1_000_000);
    const ends: (() => void)[] = [];
    const begin = (headers: Record<string, string>) =>
      room.run(request(headers), 500_000, () => new Promise<void>((resolve) => ends.push(resolve)));
    const first = begin({});
    const second = begin({ "content-length": "400000" });
    await expect(begin({})).rejects.toMatchObject({ code: "BUSY" });
    await expect(begin({ "content-length": "200000" })).rejects.toMatchObject({ code: "BUSY" });
    const small = begin({ "content-length": "10" });
    // Even small ones count something.
    await expect(begin({ "content-length": "10" })).rejects.toMatchObject({ code: "BUSY" });
    for (const end of ends) end();
    await Promise.all([first, second, small]);
    await expect(room.run(request({}), 500_000, async () => 1)).resolves.toBe(1);
    await expect(
      room.run(request({}), 1_000_000, () => Promise.reject(new Error("fault"))),
    ).rejects.toThrow("fault");
    await expect(room.run(request({}), 1_000_000, async () => 2)).resolves.toBe(2);
  });

  it("are taken from own pages and from programs, not from pages of others", () => {
    const host = "explorer.example";
    const cases: readonly (readonly [Record<string, string>, boolean])[] = [
      [{ host }, false],
      [{ host, "sec-fetch-site": "same-origin", origin: `https://${host}` }, false],
      // Chromium, for a form of a page whose referrer policy hides where it comes from.
      [{ host, "sec-fetch-site": "same-origin", origin: "null" }, false],
      [{ host, "sec-fetch-site": "none" }, false],
      [{ host, "sec-fetch-site": "cross-site", origin: `https://${host}` }, true],
      [{ host, "sec-fetch-site": "same-site" }, true],
      [{ host, origin: "https://evil.example" }, true],
      [{ host, origin: "null" }, true],
    ];
    for (const [headers, isForeign] of cases) {
      expect({ headers, isForeign: isForeignForm(request(headers)) }).toEqual({
        headers,
        isForeign,
      });
    }
  });
});
