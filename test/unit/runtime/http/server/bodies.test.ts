/**
 * Bodies that the server takes and refuses: their types, their bytes, how they come and how large they
 * are.
 */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, jest } from "@jest/globals";
import { ResponseValidator } from "express-openapi-validator/dist/middlewares/openapi.response.validator.js";
import { BodySchemaParser } from "express-openapi-validator/dist/middlewares/parsers/body.parse.js";
import supertest from "supertest";
import { KEY, makeServer, serverForTests } from "./api-server.js";

const own = serverForTests();
const { post } = own;

describe("HTTP server", () => {
  it("says of a body without a type which one it wants", async () => {
    for (const type of ["", "text/plain"]) {
      const { body } = await post("/v1/things")
        .set("content-type", type)
        .send('{"amountAtoken":"1"}');
      expect(body.errors).toEqual([
        {
          path: "/headers/content-type",
          message: "bodies are taken as Content-Type: application/json",
          errorCode: "",
        },
      ]);
    }
  });

  it("lets no client choose what is compiled and kept for its types", async () => {
    const compiled = jest.spyOn(BodySchemaParser.prototype, "parse");
    const kept = jest.spyOn(ResponseValidator.prototype, "_getOrBuildValidator");
    const judged = jest.spyOn(ResponseValidator.prototype, "_validate");
    const fresh = makeServer();
    await fresh.start();
    try {
      const one = supertest(`http://127.0.0.1:${fresh.port}`);
      const ask = (type: string) =>
        one.get("/v1/things/a").set("authorization", `Bearer ${KEY}`).set("content-type", type);
      for (let number = 0; number < 40; number += 1) {
        const type = `text/x${number}`;
        expect((await ask(type).set("accept", type)).body).toEqual({ id: "a" });
      }
      // The validator reads parameters in time that grows with the square of their length.
      const long = ";".repeat(15_000);
      expect((await ask(long)).status).toBe(200);
      expect((await ask("application/json ;x").set("accept", long)).status).toBe(200);
      const types = compiled.mock.calls.map(([, , type]) => type.normalize());
      expect(types).toEqual(["application/octet-stream", "application/json"]);
      expect(new Set(kept.mock.results.map(({ value }) => value)).size).toBe(2);
      expect(judged.mock.calls.flatMap(([{ accepts }]) => accepts)).toEqual([]);
    } finally {
      await fresh.stop();
      jest.restoreAllMocks();
    }
  });

  it("says of a packed body that it is packed", async () => {
    const plain = '{"amountAtoken":"1"}';
    const send = (encoding: string, body: Uint8Array<ArrayBuffer>) =>
      fetch(`http://127.0.0.1:${own.server.port}/v1/things`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "content-encoding": encoding,
          authorization: `Bearer ${KEY}`,
        },
        body,
      });
    for (const body of [new Uint8Array(gzipSync(plain)), Buffer.from(plain)]) {
      const refused = await send("gzip", body);
      expect(refused.status).toBe(415);
      expect(await refused.text()).toContain("Content-Encoding");
    }
    expect((await send("Identity", Buffer.from(plain))).status).toBe(201);
  });

  it("refuses bytes that are no UTF-8 and JSON that is nested too deep", async () => {
    const latin = await sendRaw(Buffer.from([0x22, 0xff, 0x22]));
    expect(latin).toContain("400 Bad Request");
    const deep = await sendRaw(Buffer.from(`${"[".repeat(400)}${"]".repeat(400)}`));
    expect(deep).toContain("400 Bad Request");
  });

  /** Sends a body byte for byte and gives the answer's head. */
  function sendRaw(body: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(own.server.port, "127.0.0.1");
      socket.once("data", (data) => {
        resolve(data.toString("latin1"));
        socket.destroy();
      });
      socket.once("error", reject);
      socket.write(
        `POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      socket.write(body);
    });
  }

  it("takes bodies in chunks, and in no other transfer coding", async () => {
    const ask = (coding: string) =>
      new Promise<string>((resolve, reject) => {
        const body = JSON.stringify({ amountAtoken: "1" });
        const socket = connect(own.server.port, "127.0.0.1");
        socket.once("data", (data) => {
          resolve(data.toString("latin1").split("\r\n", 1)[0] ?? "");
          socket.destroy();
        });
        socket.once("error", reject);
        socket.write(
          `POST /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n` +
            `Content-Type: application/json\r\nTransfer-Encoding: ${coding}\r\n\r\n` +
            `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        );
      });
    expect(await ask("Chunked")).toContain("201");
    expect(await ask("gzip, chunked")).toContain("400");
    expect(await ask("identity, chunked")).toContain("400");
  });

  it("stops reading a body without length as soon as it is too large", async () => {
    const status = await new Promise((resolve) => {
      const request = httpRequest(
        {
          port: own.server.port,
          method: "POST",
          path: "/v1/things",
          headers: { authorization: `Bearer ${KEY}`, "transfer-encoding": "chunked" },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode);
          request.destroy();
        },
      );
      request.on("error", () => undefined);
      request.write("x".repeat(5_000));
    });
    expect(status).toBe(413);
  });
});
