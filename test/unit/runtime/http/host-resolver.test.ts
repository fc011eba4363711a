/** Names of receivers, asked of a DNS server whose manners a test chooses. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { errorCode } from "../../../../chain/errors.js";
import { createHostResolver } from "../../../../runtime/http/outgoing/host-resolver.js";

const TYPE_A = 1;
const TYPE_AAAA = 28;

/** Addresses by name and type; a name without any has none, and one that begins with "hung" no answer. */
const zone: Readonly<Record<string, readonly Buffer[]>> = {
  [`both.example ${TYPE_A}`]: [Buffer.from([192, 0, 2, 1]), Buffer.from([192, 0, 2, 2])],
  [`both.example ${TYPE_AAAA}`]: [Buffer.from("20010db8000000000000000000000001", "hex")],
  [`old.example ${TYPE_A}`]: [Buffer.from([192, 0, 2, 3])],
};

let server: Socket;
let asked: string[] = [];

/** A question's name and type (RFC 1035, 4.1.2), and where it ends. */
function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let size = query.readUInt8(at); size > 0; size = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + size));
    at += 1 + size;
  }
  return { name: labels.join("."), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(query: Buffer): Buffer | undefined {
  const { name, type, end } = readQuestion(query);
  asked.push(name);
  if (name.startsWith("hung")) return undefined;
  const addresses = zone[`${name} ${type}`] ?? [];
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, address.length]);
    return Buffer.concat([record, address]);
  });
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}

beforeAll(async () => {
  server = createSocket("udp4");
  server.on("message", (query, { port, address }) => {
    const answer = answerTo(query);
    if (answer !== undefined) server.send(answer, port, address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server.close();
});

/** Ends what has no answer. */
const end = new AbortController();

const find = (host: string) =>
  createHostResolver([`127.0.0.1:${server.address().port}`])(host, end.signal);

it("finds all addresses of a name, of both families by turns", async () => {
  expect(await find("both.example")).toEqual(["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
  expect(await find("old.example")).toEqual(["192.0.2.3"]);
  await expect(find("none.example")).rejects.toMatchObject({ code: "ENODATA" });
});

it("asks nobody for this machine", async () => {
  asked = [];
  expect(await find("localhost")).toEqual(["127.0.0.1", "::1"]);
  expect(asked).toEqual([]);
});

it("lets names whose servers say nothing hold up no others, of receivers or of anybody", async () => {
  const hung = Array.from({ length: 8 }, (_, index) => find(`hung${index}.example`));
  const ended = Promise.race(hung.map((one) => one.catch(() => "hung")));
  const others = Promise.all([find("old.example"), lookup("localhost")]).then(() => "others");
  expect(await Promise.race([others, ended])).toBe("others");
  end.abort();
  expect(await Promise.all(hung.map((one) => one.catch(errorCode)))).toEqual(
    hung.map(() => "ECANCELLED"),
  );
});
