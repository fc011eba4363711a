/** Who has how many of the streams that tell pages of new heads. */
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, it } from "@jest/globals";
import { LiveStreams } from "../../../../explorer/server/live-streams.js";

/** A response that takes what is written. */
function responseOf() {
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    writeHead: () => response,
    write: () => true,
    end: () => response.emit("close"),
  });
  return response;
}

function streamsOf(options: ConstructorParameters<typeof LiveStreams>[0]) {
  const streams = new LiveStreams(options);
  const open = (remoteAddress: string) => {
    const response = responseOf();
    streams.add(response as unknown as ServerResponse, undefined, remoteAddress);
    return response;
  };
  return { streams, open };
}

const busy = expect.objectContaining({ code: "BUSY" });

it("are not all of one client, and again there for him when one of his ends", () => {
  const { streams, open } = streamsOf({ most: 30, limitsLoopback: false });
  const [first] = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"].map(open);
  expect(() => open("192.0.2.1")).toThrow(busy);
  open("192.0.2.2");
  first?.end();
  open("192.0.2.1");
  expect(() => open("192.0.2.1")).toThrow(busy);
  expect(streams.size).toBe(4);
  streams.close();
  expect(streams.size).toBe(0);
});

it("are all for who is on this machine, unless he is limited, too", () => {
  const free = streamsOf({ most: 20, limitsLoopback: false });
  for (let count = 0; count < 20; count++) free.open("127.0.0.1");
  expect(() => free.open("127.0.0.1")).toThrow(busy);
  expect(() => free.open("192.0.2.1")).toThrow(busy);
  free.streams.close();
  const limited = streamsOf({ most: 20, limitsLoopback: true });
  for (let count = 0; count < 2; count++) limited.open("::1");
  expect(() => limited.open("::1")).toThrow(busy);
  limited.streams.close();
});
