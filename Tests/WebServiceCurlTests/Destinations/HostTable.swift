/// Hosts of URLs inside and outside of the public internet, from the registries of IANA and the
/// documentation of cloud providers: the boundaries of networks and their neighbors, addresses that
/// contain an IPv4 address, and spellings that parsers of addresses accept. They were selected
/// independently of the library's table.
enum HostTable {
    /// The hosts to which no connection may be opened. Some of them are malformed.
    static let inside = """
        0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255
        169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255
        192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0
        203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 192.88.99.2 0.0.0.1 10.0.0.1 127.0.0.1
        127.1.2.3 127.255.255.254 172.20.10.1 192.168.1.1 198.19.0.1 192.0.0.7 192.0.0.8 192.0.0.11 192.0.0.170
        192.0.0.171 224.0.0.1 224.0.0.251 232.1.2.3 233.252.0.1 234.0.0.1 239.255.255.250 255.255.255.254
        169.254.169.254 169.254.170.2 169.254.170.23 169.254.169.253 169.254.169.123 169.254.0.23 169.254.42.42
        100.100.100.200 100.96.0.96 192.0.0.192 [fd00:ec2::254] [fd00:ec2::23] [fd00:ec2::253] [fd00:ec2::123]
        [fd20:ce::254] [fd00:c1::a9fe:a9fe] [fd00:42::42] [fe80::a9fe:a9fe] [fe80::1234:5678:9abc] [64:ff9b:1::]
        [64:ff9b:1:ffff:ffff:ffff:ffff:ffff] [100::] [100::ffff:ffff:ffff:ffff] [100:0:0:1::]
        [100::1:ffff:ffff:ffff:ffff] [2001:2::] [2001:2:0:ffff:ffff:ffff:ffff:ffff] [2001:10::]
        [2001:1f:ffff:ffff:ffff:ffff:ffff:ffff] [2001:db8::] [2001:db8:ffff:ffff:ffff:ffff:ffff:ffff] [3fff::]
        [3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff] [5f00::] [5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [fc00::]
        [fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [fe80::] [febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [fec0::]
        [feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [ff00::] [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [::] [::1]
        [::2] [2001:1::] [2001:1::4] [2001:1:ffff:ffff:ffff:ffff:ffff:ffff] [2001:2:1::]
        [2001:2:ffff:ffff:ffff:ffff:ffff:ffff] [2001:4::] [2001:4:111:ffff:ffff:ffff:ffff:ffff] [2001:4:113::]
        [2001:5::1] [2001:f:ffff:ffff:ffff:ffff:ffff:ffff] [2001:40::] [2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff]
        [2001:2::1] [2001:db8::1] [3fff:0:1::1] [5f00::1] [100::1] [100:0:0:1::1] [fd00::1]
        [fd12:3456:789a:1::1] [fe80::1] [febf::1] [fec0::1] [ff01::1] [ff02::1] [ff02::fb] [ff05::2] [ff0e::1]
        [::ffff:0.0.0.0] [::ffff:255.255.255.255] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:a00:1]
        [::ffff:172.16.0.1] [::ffff:c0a8:101] [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:100.64.0.1]
        [::ffff:6464:64c8] [::127.0.0.1] [::7f00:1] [::10.0.0.1] [::192.168.1.1] [::a9fe:a9fe] [::ffff:ffff]
        [::ffff:0:127.0.0.1] [::ffff:0:a9fe:a9fe] [::ffff:0:10.0.0.1] [64:ff9b::] [64:ff9b::ffff:ffff]
        [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::10.0.0.1] [64:ff9b::ac10:1] [64:ff9b::c0a8:101]
        [64:ff9b::a9fe:a9fe] [64:ff9b::100.100.100.200] [64:ff9b::192.0.0.171] [64:ff9b::224.0.0.1]
        [64:ff9b:1::7f00:1] [64:ff9b:1::10.0.0.1] [64:ff9b:1:a9fe:a9:fe00::] [64:ff9b:1::8.8.8.8] [2002::]
        [2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff] [2002:7f00:1::] [2002:7f00:1::1] [2002:a00:1::1]
        [2002:ac1f:ffff::1] [2002:c0a8:101::c0a8:101] [2002:a9fe:a9fe::] [2002:6440:1::] [2002:c000:201::]
        [2002:e000:1::] [2001::] [2001:0:ffff:ffff:ffff:ffff:ffff:ffff] [2001:0:4136:e378:8000:63bf:f5ff:fffe]
        [2001:0:4136:e378:8000:63bf:80ff:fffe] [2001:0:4136:e378:8000:63bf:5601:5601]
        [2001:0:4136:e378:8000:63bf:3f57:fefe] [2001:0:4136:e378:8000:63bf:3fff:fdd2]
        [2001:0:7f00:1:8000:63bf:f7f7:f7f7] [2001:0:a00:1:8000:63bf:f7f7:f7f7] [fe80::5efe:10.0.0.1]
        [fe80::200:5efe:808:808] [fe80::5efe:7f00:1] [fd00::5efe:c0a8:101] [0:0:0:0:0:0:0:1]
        [0000:0000:0000:0000:0000:0000:0000:0001] [0::1] [::0:1] [0:0::0.0.0.1] [::0.0.0.0] [0:0:0:0:0:0:0:0]
        [::FFFF:127.0.0.1] [0:0:0:0:0:ffff:127.0.0.1] [0000:0000:0000:0000:0000:FFFF:7F00:0001]
        [0::ffff:0a00:0001] [FE80::1] [FD00:0EC2:0000::0254] [fd00:ec2:0:0:0:0:0:254] [64:FF9B::7F00:1]
        [0064:ff9b:0:0:0:0:a9fe:a9fe] [2002:7F00:0001:0:0:0:0:0] [FF02:0:0:0:0:0:0:1] [fe80::1%25eth0]
        [fe80::1%eth0] [FE80::A9FE:A9FE%25ETH0] [fe80::1%251] [::1%25lo] [ff02::1%25eth0]
        [::ffff:127.0.0.1%25lo] [::ffff:127.1] [::ffff:0x7f.0.0.1] [::ffff:127.0.0.01] [%3A%3A1] 127.1 127.0.1
        127.65530 2130706433 0x7f000001 0X7F000001 017700000001 0x7f.1 0x7f.0x0.0x0.0x1 0X7F.0X0.0X0.0X1
        0177.0.0.1 0177.0.0.01 0177.0x0.0.1 0x7f.0.0.01 0x7f.0177.513 00000177.0.0.1
        127.00000000000000000000000000001 127.0x.0x.1 127.0.0.1. 127.1. 2130706433. 0x7f000001. 0 00 0x0 0x 0.
        0.0 012.0.0.1 0xa.1 167772161 10.1 0300.0250.0.1 0xC0A80101 3232235777 192.168.257 192.168.0.0x1
        0254.16.1 2886729729 0xAC.0x1F.255.255 2852039166 0xA9FEA9FE 169.254.43518 0251.0376.0251.0376
        025177524776 0xa9.254.0251.0xFE 169.254.169.254. 0x64.0x64.0x64.0xC8 1684301000 0xffffffff 037777777777
        4294967295 0xe0000001 %31%32%37.0.0.1 127%2e0%2e0%2e1 127%2E0%2E0%2E1 %32%31%33%30%37%30%36%34%33%33
        %30x7f.1 169.254.169.25%34 １２７.０.０.１ %EF%BC%91%EF%BC%92%EF%BC%97.0.0.1 127。0。0。1 127．0．0．1 ①②⑦.⓪.⓪.①
        𝟏𝟐𝟕.𝟎.𝟎.𝟏 ０ｘ７ｆ.１ １６９.２５４.１６９.２５４ 127\u{AD}.0.0.1 1\u{200B}27.0.0.1 １０.0.0.1 １９２。１６８。１。１ 0192.168.1.1
        0x17f000001 6425673729 127.0.0.257 383.0.0.1 0o177.0.0.1 127.0.0.1%20 127.0.0.1%20foo
        127.0.0.1%00.example.com 127.0.0.1%09 127.0.0.1.. localhost LOCALHOST localhost. LOCALHOST. LocalHost
        foo.localhost foo.bar.localhost. FOO.LOCALHOST localhost.localdomain foo.localhost.localdomain
        localhost6 ip6-localhost ip6-loopback ip6-allnodes loc%61lhost %6c%6f%63%61%6c%68%6f%73%74 ｌｏｃａｌｈｏｓｔ
        ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhost。 lo\u{AD}calhost _gateway _outbound _localdnsstub printer.local PRINTER.LOCAL.
        metadata.google.internal METADATA.GOOGLE.INTERNAL. host.docker.internal kubernetes.docker.internal
        """.split(whereSeparator: \.isWhitespace).map(String.init)

    /// The hosts of protocol assignments that are globally reachable, but can lead to a local host.
    static let assigned = """
        192.0.0.9 192.0.0.10 [2001:3::] [2001:3:ffff:ffff:ffff:ffff:ffff:ffff] [2001:4:112::]
        [2001:4:112:ffff:ffff:ffff:ffff:ffff] [2001:20::] [2001:2f:ffff:ffff:ffff:ffff:ffff:ffff] [2001:30::]
        [2001:3f:ffff:ffff:ffff:ffff:ffff:ffff] [2001:1::1] [2001:1::2] [2001:1::3]
        """.split(whereSeparator: \.isWhitespace).map(String.init)

    /// The public hosts.
    static let outside = """
        1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
        169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.167.255.255
        192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0
        223.255.255.255 192.31.196.0 192.31.196.255 192.31.195.255 192.31.197.0 192.52.193.0 192.52.193.255
        192.52.192.255 192.52.194.0 192.175.48.0 192.175.48.255 192.175.47.255 192.175.49.0 192.88.98.255
        192.88.100.0 1.1.1.1 8.8.8.8 9.9.9.9 100.0.0.1 172.64.0.1 192.169.1.1 203.0.112.1 168.63.129.15
        168.63.129.17 [2620:4f:8000::] [2620:4f:8000:ffff:ffff:ffff:ffff:ffff] [2001:200::]
        [2001:db7:ffff:ffff:ffff:ffff:ffff:ffff] [2001:db9::] [2003::] [2620:4f:7fff:ffff:ffff:ffff:ffff:ffff]
        [2620:4f:8001::] [2001:4860:4860::8888] [2606:4700:4700::1111] [2a00:1450:4001:800::200e] [2400:cb00::1]
        [2c0f:fb50::1] [2800:3f0::1] [64:ff9b::9.255.255.255] [64:ff9b::8.8.8.8] [64:ff9b::808:808]
        [64:ff9b::b00:0] [64:ff9b::1.1.1.1] [2002:808:808::] [2002:808:808::808:808] [2002:101:101::1]
        [2002:ac20:0::1] [2002:9ff:ffff::1] [2606:4700::200:5efe:808:808] [2606:4700::7f00:1]
        [2606:4700:4700:0:0:0:0:1111] [2606:4700:4700:0000:0000:0000:0000:1111] [2A00:1450:4001:0800::200E]
        [2001:4860:4860::0.0.136.136] ８.８.８.８ 8。8。8。8
        """.split(whereSeparator: \.isWhitespace).map(String.init)

    /// Spellings of public hosts that a service does not accept in a URL.
    static let unsupported = """
        134744072 0x08080808 0X8080808 01002004010 8.8.2056 8.526344 0x8.8.8.8 8.8.8.8. 1.1 16843009 01.01.01.01
        0x01010101. %38.8.8.8 0xB000000 0254.040.0.0 2851995647
        """.split(whereSeparator: \.isWhitespace).map(String.init)
}
