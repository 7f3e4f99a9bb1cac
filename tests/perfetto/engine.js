// Perfetto's trace processor in its own worker, as a byte pipe: ask() posts bytes and gives the first that come back, receive() the next.
// The protocol spoken through the pipe is Python's business (processor.py).
'use strict';
let port, waiting = null, broken = null, received = [];

function wake() {
  if (!waiting || (!received.length && !broken)) return;
  const done = waiting, chunks = received;
  waiting = null;
  received = [];
  if (!chunks.length) return done({error: broken});
  let binary = '';
  for (const chunk of chunks)
    for (let i = 0; i < chunk.length; i += 32768) binary += String.fromCharCode.apply(null, chunk.subarray(i, i + 32768));
  done({data: btoa(binary)});
}

function fail(error) {
  broken = String(error && error.message || error);
  wake();
}

function start(engine) {
  const worker = new Worker(engine), channel = new MessageChannel();
  worker.onerror = event => fail(event.message || 'the engine worker failed');
  port = channel.port2;
  port.onmessage = event => { received.push(event.data); wake(); };
  worker.postMessage(channel.port1, [channel.port1]);
}

// The text is base64; without it, what is at the URL.
async function ask(text, url, done) {
  try {
    const data = text ? Uint8Array.from(atob(text), c => c.charCodeAt(0)) : new Uint8Array(await (await fetch(url)).arrayBuffer());
    port.postMessage(data, [data.buffer]);
  } catch (error) {
    return done({error: String(error)});
  }
  receive(done);
}

function receive(done) {
  waiting = done;
  wake();
}
