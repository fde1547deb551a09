/** deep-chat in its own format. The id makes its questions one conversation. */
import 'deep-chat'

const chat = document.querySelector('deep-chat')
chat.connect = {
  url: 'http://localhost:8108/deep-chat/default',
  headers: { authorization: 'Bearer xyz' },
  stream: true,
  additionalBodyProps: { conversation_id: crypto.randomUUID() },
}
