/** A client that sends what it likes, when it likes. */
import { connect } from "node:net";

/** Connects; `answered` gives the status lines once there are so many, or it closed. */
export function connectTo(port: number) {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (data) => (text += data.toString()));
  const faults: unknown[] = [];
  socket.on("error", (error: NodeJS.ErrnoException) => faults.push(error.code));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const answered = async (count: number) => {
    const lines = () => text.match(/HTTP\/1\.1 \d+/g) ?? [];
    while (lines().length < count && !socket.closed) {
      await Promise.race([new Promise((resolve) => socket.once("data", resolve)), closed]);
    }
    return lines();
  };
  return { socket, closed, answered, faults };
}
