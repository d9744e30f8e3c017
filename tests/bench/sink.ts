/** A backend that takes bodies of any length without parsing them, so that what waits waits for the gate. Prints its URL. */
const completion = {
  id: "chatcmpl-1",
  object: "chat.completion",
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
};

async function drain(request: Request): Promise<Response> {
  await request.body?.pipeTo(new WritableStream());
  return Response.json(completion);
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, maxRequestBodySize: 1e9, fetch: drain });
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.port}` }));
