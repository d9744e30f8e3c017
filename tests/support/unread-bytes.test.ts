import { expect, test } from "bun:test";
import { connectRaw } from "./raw-client.ts";
import { pollUntil } from "./poll-until.ts";
import { unreadBytes } from "./unread-bytes.ts";

test("bytes count as unread until the receiver reads them", async () => {
  let received = "";
  let resume = (): void => {};
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.pause();
        resume = () => socket.resume();
      },
      data: (_, bytes) => void (received += bytes.toString()),
    },
  });
  const client = await connectRaw(`http://127.0.0.1:${listener.port}`);
  client.send("hello");
  await pollUntil(() => unreadBytes(listener.port) === 5);
  resume();
  await pollUntil(() => unreadBytes(listener.port) === 0);
  expect(received).toBe("hello");
  client.close();
  listener.stop(true);
});
